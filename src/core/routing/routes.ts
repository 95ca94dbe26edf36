/**
 * The routes of one tenant, as they stand in Redis: what `compileRoutes` wants, what a rebuild reads back, and what the
 * difference is made of. Everything is text, as Redis keeps it.
 */
export interface TenantRoutes {
  /** `ten_…` */
  readonly tenant: string;
  /** Account that pays for distribution (`acc_…`); empty when the workspace has none. */
  readonly payer: string;
  /** The payer's plan; empty without a payer. Metered: its tokens are only counted, nothing is reserved for a batch. */
  readonly plan: 'Free' | 'Metered' | '';
  /** SHA-256 (hex) of each ingress key → when it ends (ms), or '' for never. */
  readonly keys: Readonly<Record<string, string>>;
  readonly queues: Readonly<Record<string, QueueRoute>>;
  /** By `int_…`. */
  readonly integrations: Readonly<Record<string, IntegrationRoute>>;
}

export interface QueueRoute {
  /** Generation: of the stream's UID, so that a stream that is made again never meets what the old one left. */
  readonly gen: string;
  readonly state: 'open' | 'closing';
  readonly retentionMs: number;
  readonly maxBytes: number;
  /** CloudEvents `source` of its events. */
  readonly source: string;
  readonly eventTypes: readonly string[];
  readonly contextHeaders: {
    readonly eventType: readonly string[];
    readonly groupKey: readonly string[];
    readonly eventId: readonly string[];
    readonly forward: readonly string[];
  };
}

export interface IntegrationRoute {
  /** pending: not accepted yet, nothing is routed or held; closed: declined, revoked, expired or gone. */
  readonly state: 'pending' | 'active' | 'closed';
  /** When it became active, used where Redis does not know it; ms. */
  readonly sinceMs: number;
  /** By `sub_…`. */
  readonly subscriptions: Readonly<Record<string, SubscriptionRoute>>;
}

export interface SubscriptionRoute {
  /** Generation of the inbox: of the subscription's UID. */
  readonly inc: string;
  readonly queue: string;
  readonly gen: string;
  /** open: events are routed; paused: they stay behind and are caught up; closed: they are not for it. */
  readonly route: 'open' | 'paused' | 'closed';
  /** Only while Blocks cover it: what becomes of what waits when none does any more; skip when all of them say so. */
  readonly onUnblock?: 'continue' | 'skip';
  /** open: attempts are claimed; held: what lies in the inbox waits. */
  readonly send: 'open' | 'held';
  /** Its position begins here where Redis does not know it; ms. */
  readonly sinceMs: number;
  readonly unordered: boolean;
  /** Attempts in flight at once. */
  readonly cap: number;
  /** Attempts started in a second; absent: no limit. */
  readonly maxPerSecond?: number;
  /** When its owner said that the endpoint works again, ms: what was wrong with it before does not count. */
  readonly enabledMs?: number;
  /** The endpoint's configuration sealed with the root key; empty for a subscription that only pulls. */
  readonly endpoint: string;
}
