import type { Balance, Shortage } from '../../core/events/tokens.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { GateReader } from '../../redis/gate-reader.ts';
import type { InboxOperations } from '../../redis/inbox-operations.ts';
import type { InboxReader } from '../../redis/inbox-reader.ts';
import type { InboxRecovery } from '../../redis/inbox-recovery.ts';
import type { Replays } from '../../redis/replays.ts';
import type { RoutingReader } from '../../redis/routing-reader.ts';
import type { TrafficReader } from '../../redis/traffic-reader.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Clock } from '../../time/clock.ts';
import { createWorld, type World } from './caches.ts';
import { createObjects, type Objects } from './objects.ts';
import { createOwnership, type Ownership } from './ownership.ts';

/** What the routes work with. */
export interface Facade {
  readonly world: World;
  readonly objects: Objects;
  readonly ownership: Ownership;
  /** What the data plane has in Redis. */
  readonly gates: GateReader;
  readonly inboxes: InboxReader;
  /** What decides about routing, and where events went. */
  readonly routing: RoutingReader;
  /** What was counted for producers. */
  readonly traffic: TrafficReader;
  /** The facade's only writes outside of Kubernetes. */
  readonly operations: InboxOperations;
  readonly recovery: InboxRecovery;
  readonly replays: Replays;
  /** What an account (`acc_…`) has and has spent, and which queues wait for more; undefined while Redis does not know its plan. */
  readonly readBalance: (
    account: string,
  ) => Promise<(Balance & { readonly shortages: readonly Shortage[] }) | undefined>;
  readonly rootKey: Uint8Array;
  /** Redis's clock, ms. */
  readonly nowMs: () => number;
  /** Milliseconds since the epoch. */
  readonly wallMs: () => number;
  /** For deadlines and pauses. */
  readonly clock: Clock;
  readonly log: Logger;
}

/** What a facade is made of: an API server, what Redis is asked for, and time. */
export type FacadeParts = Omit<Facade, 'world' | 'objects' | 'ownership' | 'wallMs'> & {
  readonly client: KubeClient;
};

export function createFacade({ client, ...parts }: FacadeParts): Facade {
  const { clock } = parts;
  const world = createWorld(client, clock, parts.log);
  return {
    ...parts,
    world,
    objects: createObjects(client, world, clock),
    ownership: createOwnership(world),
    wallMs: clock.wallMs,
  };
}
