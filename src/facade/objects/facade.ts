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

/** Facade contains the dependencies of the routes. */
export interface Facade {
  readonly caches: Caches;
  readonly writer: ResourceWriter;
  readonly ownership: Ownership;
  /** The state of the data plane in Redis. */
  readonly gates: GateReader;
  readonly inboxes: InboxReader;
  /** Reads the state that determines the routing, and the inboxes that events were routed to. */
  readonly routing: RoutingReader;
  /** Reads the counts of the producers. */
  readonly traffic: TrafficReader;
  /** The inbox operations. These are the only writes of the facade outside of Kubernetes. */
  readonly operations: InboxOperations;
  readonly recovery: InboxRecovery;
  readonly replays: Replays;
  /**
   * Reads the balance of an account (`acc_…`) and the queues that wait for tokens. Returns undefined if the plan of the
   * account is not in Redis.
   */
  readonly readBalance: (
    account: string,
  ) => Promise<(Balance & { readonly shortages: readonly Shortage[] }) | undefined>;
  readonly rootKey: Uint8Array;
  /** The clock of Redis in milliseconds. */
  readonly nowMs: () => number;
  /** The wall clock in milliseconds since the epoch. */
  readonly wallMs: () => number;
  /** The clock that is used for deadlines and delays. */
  readonly clock: Clock;
  readonly log: Logger;
}

/** The values that are required to create a facade. */
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
