/**
 * The routes of one tenant as Redis has them: the output of `compileRoutes`, the input of a rebuild, and the basis of
 * differences. All values are text, as in Redis.
 */
export interface TenantRoutes {
  /** `ten_…` */
  readonly tenant: string;
  /** Account that pays for distribution (`acc_…`); empty if the workspace has none. */
  readonly payer: string;
  /** The payer's plan; empty without a payer. Metered: tokens are only counted, and no batch reserves any. */
  readonly plan: 'Free' | 'Metered' | '';
  /** SHA-256 (hex) of each ingress key → when it expires (ms), or '' for never. */
  readonly keys: Readonly<Record<string, string>>;
  readonly queues: Readonly<Record<string, QueueRoute>>;
  /** By `int_…`. */
  readonly integrations: Readonly<Record<string, IntegrationRoute>>;
}

export interface QueueRoute {
  /** Generation from the stream's UID: a re-created stream never meets the data of the old one. */
  readonly gen: string;
  readonly state: 'open' | 'closing';
  readonly retentionMs: number;
  readonly maxBytes: number;
  /** CloudEvents `source` of the stream's events. */
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
  /** pending: not accepted yet, nothing is routed or held; closed: declined, revoked, expired or deleted. */
  readonly state: 'pending' | 'active' | 'closed';
  /** When it became active, ms; used if Redis does not know it. */
  readonly sinceMs: number;
  /** By `sub_…`. */
  readonly subscriptions: Readonly<Record<string, SubscriptionRoute>>;
}

export interface SubscriptionRoute {
  /** Generation of the inbox, from the subscription's UID. */
  readonly inc: string;
  readonly queue: string;
  readonly gen: string;
  /** open: events are routed; paused: events wait and are caught up; closed: events are not for this subscription. */
  readonly route: 'open' | 'paused' | 'closed';
  /**
   * Only while Blocks cover it: what happens to the backlog when the last Block ends. skip if all Blocks ask for it.
   */
  readonly onUnblock?: 'continue' | 'skip';
  /** open: attempts are claimed; held: events in the inbox wait. */
  readonly send: 'open' | 'held';
  /** Start position if Redis knows none, ms. */
  readonly sinceMs: number;
  readonly unordered: boolean;
  /** Maximum concurrent attempts. */
  readonly cap: number;
  /** Maximum attempts started per second; absent: no limit. */
  readonly maxPerSecond?: number;
  /** When its owner enabled the endpoint, ms: earlier failures do not count. */
  readonly enabledMs?: number;
  /** The endpoint's configuration, sealed with the root key; empty for a subscription without an endpoint. */
  readonly endpoint: string;
}
