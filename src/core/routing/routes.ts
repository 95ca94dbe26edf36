/**
 * A tenant's routes as they appear in Redis. Produced by `compileRoutes`, and used for rebuilding and for finding
 * differences. All values are text, like in Redis.
 */
export interface TenantRoutes {
  /** `ten_…` */
  readonly tenant: string;
  /** Account paying for distribution (`acc_…`). Empty if the workspace doesn't have one. */
  readonly payer: string;
  /** Plan of the payer, or empty without one. With Metered, tokens are only counted and routing never waits for any. */
  readonly plan: 'Free' | 'Metered' | '';
  /** Events per second that each replica of ingress accepts for the payer. Unlimited if absent. */
  readonly eventsPerSecond?: number;
  /** Bytes of events that all streams of the payer can store together. Unlimited if absent. */
  readonly storedBytes?: number;
  /** Maps the SHA-256 (hex) of each ingress key to when it expires in ms, or '' for never. */
  readonly keys: Readonly<Record<string, string>>;
  readonly queues: Readonly<Record<string, QueueRoute>>;
  /** By `int_…`. */
  readonly integrations: Readonly<Record<string, IntegrationRoute>>;
}

export interface QueueRoute {
  /** Generation from the stream's UID. This prevents a re-created stream from seeing data of the old one. */
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
  /**
   * While pending, i.e. not accepted yet, nothing is routed or held. Closed is declined, revoked, expired, or deleted.
   */
  readonly state: 'pending' | 'active' | 'closed';
  /** When it became active, in ms. Only used if Redis doesn't know. */
  readonly sinceMs: number;
  /** By `sub_…`. */
  readonly subscriptions: Readonly<Record<string, SubscriptionRoute>>;
}

export interface SubscriptionRoute {
  /** Generation of the inbox, based on the subscription's UID. */
  readonly inc: string;
  readonly queue: string;
  readonly gen: string;
  /** When open, events are routed. When paused, they wait and will be caught up. Closed gets no events. */
  readonly route: 'open' | 'paused' | 'closed';
  /** Only present while covered by Blocks. Decides about the backlog after the last Block: skip if all ask for it. */
  readonly onUnblock?: 'continue' | 'skip';
  /** When open, attempts are claimed. When held, events wait in the inbox. */
  readonly send: 'open' | 'held';
  /** Start position in ms, if Redis doesn't know one. */
  readonly sinceMs: number;
  readonly unordered: boolean;
  /** Maximum concurrent attempts. */
  readonly cap: number;
  /** Maximum number of attempts to start per second. Unlimited if absent. */
  readonly maxPerSecond?: number;
  /** When the owner enabled the endpoint, in ms. Failures before that do not count. */
  readonly enabledMs?: number;
  /** Endpoint configuration, sealed with the root key. Empty for a subscription without an endpoint. */
  readonly endpoint: string;
}
