import type { Replays } from '../../accounts/replays.ts';
import type { HeaderSeals } from '../../core/delivery/header-seal.ts';
import type { KeyRing } from '../../core/delivery/key-ring.ts';
import type { Balance, Shortage } from '../../core/events/tokens.ts';
import type { LimitPolicy, Limits } from '../../core/limits/limits.ts';
import type { KeyedCalls } from '../../idempotency/keyed-calls.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { InboxOperations } from '../../plane/inbox-operations.ts';
import type { InboxReader } from '../../plane/inbox-reader.ts';
import type { InboxRecovery } from '../../plane/inbox-recovery.ts';
import type { RoutingReader } from '../../plane/routing-reader.ts';
import type { TrafficReader } from '../../plane/traffic-reader.ts';
import type { GateReader } from '../../record/gate-reader.ts';
import type { MailReader } from '../../record/mail-reader.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Clock } from '../../time/clock.ts';
import { type Caches, createCaches } from '../caches/caches.ts';
import { createLimitGuard, type LimitGuard } from './limit-guard.ts';
import { createOwnership, type Ownership } from './ownership.ts';
import { createResourceWriter, type ResourceWriter } from './resource-writer.ts';
import { createStoredBytes } from './stored-bytes.ts';

/** Facade holds everything the routes depend on. */
export interface Facade {
  readonly caches: Caches;
  readonly writer: ResourceWriter;
  readonly ownership: Ownership;
  readonly limits: LimitGuard;
  /** The highest limits that an account can have. */
  readonly ceilings: Limits;
  /** The limits for accounts created when accepting an invitation. */
  readonly invitedLimits: Limits;
  /** Data plane state in Redis. */
  readonly gates: GateReader;
  readonly inboxes: InboxReader;
  /** Reads the state that determines routing, as well as the inboxes that events were routed to. */
  readonly routing: RoutingReader;
  /** Reads which invitations were sent by email. */
  readonly mails: MailReader;
  /** Reads producer counts. */
  readonly traffic: TrafficReader;
  /** Inbox operations. Apart from these, the facade only writes to Kubernetes. */
  readonly operations: InboxOperations;
  readonly recovery: InboxRecovery;
  readonly replays: Replays;
  /** Calls with an Idempotency-Key whose responses are stored. */
  readonly keyedCalls: KeyedCalls;
  /**
   * Reads the balance of an account (`acc_…`) and which queues are waiting for tokens. Undefined if Redis does not
   * contain the account's plan.
   */
  readonly readBalance: (
    account: string,
  ) => Promise<(Balance & { readonly shortages: readonly Shortage[] }) | undefined>;
  /** Reads the number of bytes that the events of an account use. */
  readonly readStoredBytes: (account: string) => Promise<number>;
  /** Root keys. Object names are derived from the oldest key. */
  readonly keys: KeyRing;
  /** The issuers whose access tokens are accepted. */
  readonly issuers: readonly string[];
  /** True if only callers with the invited email address can answer an invitation. */
  readonly requireInvitedEmail: boolean;
  /** Encrypts the endpoint header values. */
  readonly headerSeals: HeaderSeals;
  /** The name of this installation, or `''` for the default one. */
  readonly instance: string;
  /** Redis clock in milliseconds. */
  readonly nowMs: () => number;
  /** Wall clock, in milliseconds since the epoch. */
  readonly wallMs: () => number;
  /** Clock for deadlines and delays. */
  readonly clock: Clock;
  readonly log: Logger;
}

/** Values required to create a facade. */
type FacadeParts = Omit<
  Facade,
  'caches' | 'writer' | 'ownership' | 'limits' | 'ceilings' | 'readStoredBytes' | 'wallMs'
> & {
  readonly client: KubeClient;
  readonly limitPolicy: LimitPolicy;
};

export function createFacade({ client, limitPolicy, ...parts }: FacadeParts): Facade {
  const { clock } = parts;
  const caches = createCaches(client, clock, parts.log, parts.instance);
  const limits = createLimitGuard({ caches, policy: limitPolicy, clock });
  return {
    ...parts,
    caches,
    writer: createResourceWriter({ client, caches, limits, clock }),
    ownership: createOwnership(caches),
    limits,
    ceilings: limitPolicy.ceilings,
    readStoredBytes: createStoredBytes({ caches, routing: parts.routing }),
    wallMs: clock.wallMs,
  };
}
