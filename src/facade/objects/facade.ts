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
import { type Caches, createCaches } from './caches.ts';
import { createOwnership, type Ownership } from './ownership.ts';
import { createResourceWriter, type ResourceWriter } from './resource-writer.ts';

/** The dependencies of the routes. */
export interface Facade {
  readonly caches: Caches;
  readonly writer: ResourceWriter;
  readonly ownership: Ownership;
  /** The data plane's state in Redis. */
  readonly gates: GateReader;
  readonly inboxes: InboxReader;
  /** Reads the data that the gate uses and the routing results of events. */
  readonly routing: RoutingReader;
  /** Reads the counts of producers. */
  readonly traffic: TrafficReader;
  /** Performs the only writes of the facade outside Kubernetes. */
  readonly operations: InboxOperations;
  readonly recovery: InboxRecovery;
  readonly replays: Replays;
  /**
   * Reads the balance of an account (`acc_…`) and the queues that are waiting for tokens. Returns undefined if Redis
   * does not contain the plan of the account.
   */
  readonly readBalance: (
    account: string,
  ) => Promise<(Balance & { readonly shortages: readonly Shortage[] }) | undefined>;
  readonly rootKey: Uint8Array;
  /** The clock of Redis in milliseconds. */
  readonly nowMs: () => number;
  /** The time in milliseconds since the epoch. */
  readonly wallMs: () => number;
  /** The clock that is used for deadlines and delays. */
  readonly clock: Clock;
  readonly log: Logger;
}

/** The dependencies that are used to create a facade. */
type FacadeParts = Omit<Facade, 'caches' | 'writer' | 'ownership' | 'wallMs'> & {
  readonly client: KubeClient;
};

export function createFacade({ client, ...parts }: FacadeParts): Facade {
  const { clock } = parts;
  const caches = createCaches(client, clock, parts.log);
  return {
    ...parts,
    caches,
    writer: createResourceWriter(client, caches, clock),
    ownership: createOwnership(caches),
    wallMs: clock.wallMs,
  };
}
