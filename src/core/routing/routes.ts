/**
 * The tenant routes in the format used in Redis. `compileRoutes` creates the routes. The controller uses them to
 * rebuild the data in Redis and to find differences. Like in Redis, all values are strings.
 */
export interface TenantRoutes {
  /** `ten_…` */
  readonly tenant: string;
  /** Account paying for distribution (`acc_…`). Empty if the workspace does not have an account. */
  readonly payer: string;
  /**
   * The plan of the payer. Empty if there is no payer, or if the payer does not exist. On the Metered plan, tokens are
   * only counted. Routing does not wait for them.
   */
  readonly plan: 'Free' | 'Metered' | '';
  /** The number of events per second accepted by each ingress replica for the payer. Unlimited if absent. */
  readonly eventsPerSecond?: number;
  /** The number of bytes that the events of all streams of the payer can use. Unlimited if absent. */
  readonly storedBytes?: number;
  /**
   * Used to look up the time at which an ingress key expires (in milliseconds, or '' if it never expires), given its
   * SHA-256 in hex.
   */
  readonly keys: Readonly<Record<string, string>>;
  readonly queues: Readonly<Record<string, QueueRoute>>;
  /** By `int_…`. */
  readonly integrations: Readonly<Record<string, IntegrationRoute>>;
}

export interface QueueRoute {
  /** Generation from the stream's UID, which prevents a re-created stream from seeing data of the old one. */
  readonly gen: string;
  readonly state: 'open' | 'closing';
  readonly retentionMs: number;
  readonly maxBytes: number;
  /** The CloudEvents `source` for events of this stream. */
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
   * A pending integration has not been accepted yet, so no events are routed or held. Closed is declined, revoked,
   * expired, or deleted.
   */
  readonly state: 'pending' | 'active' | 'closed';
  /** The time at which it became active, in milliseconds. Only used if Redis does not contain this time. */
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
  /**
   * Only present if Blocks apply to it. Specifies how to handle the backlog after the last Block has been removed. The
   * backlog is only skipped if all Blocks specify this.
   */
  readonly onUnblock?: 'continue' | 'skip';
  /** When open, attempts are claimed. When held, events wait in the inbox. */
  readonly send: 'open' | 'held';
  /** The start position (in milliseconds), which is used if Redis does not contain a position. */
  readonly sinceMs: number;
  readonly unordered: boolean;
  /** The maximum concurrent attempts. */
  readonly cap: number;
  /** The maximum number of attempts to start per second. Unlimited if absent. */
  readonly maxPerSecond?: number;
  /** The time at which the owner enabled the endpoint, in milliseconds. Failures before that do not count. */
  readonly enabledMs?: number;
  /** Endpoint configuration, sealed with the root key. Empty if the subscription does not have an endpoint. */
  readonly endpoint: string;
}
