/**
 * The tenant routes, in the format that is used in Redis. They are created by `compileRoutes`, and are used to
 * rebuild the data and to find differences. As in Redis, all of the values are strings.
 */
export interface TenantRoutes {
  /** `ten_…` */
  readonly tenant: string;
  /** Account paying for distribution (`acc_…`). This is empty if the workspace does not have an account. */
  readonly payer: string;
  /**
   * The plan of the payer. This is empty if there is no payer. If the plan is Metered, tokens are only counted, and
   * routing does not have to wait for them.
   */
  readonly plan: 'Free' | 'Metered' | '';
  /** The number of events per second that each replica of ingress will accept for the payer. Unlimited if absent. */
  readonly eventsPerSecond?: number;
  /** The number of bytes that all streams of the payer can use to store events. Unlimited if absent. */
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
  /** Generation from the stream's UID. This prevents a re-created stream from seeing data of the old one. */
  readonly gen: string;
  readonly state: 'open' | 'closing';
  readonly retentionMs: number;
  readonly maxBytes: number;
  /** The CloudEvents `source` to use for events of this stream. */
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
   * If it is pending, it has not been accepted yet, and nothing will be routed or held. Closed is declined, revoked,
   * expired, or deleted.
   */
  readonly state: 'pending' | 'active' | 'closed';
  /** The time at which it became active, in milliseconds. This is only used if it is not known in Redis. */
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
   * This is only present if there are Blocks that apply to it. Used to decide what to do with the backlog after the
   * last Block has been removed. It is only skipped if all of the Blocks specify this.
   */
  readonly onUnblock?: 'continue' | 'skip';
  /** When open, attempts are claimed. When held, events wait in the inbox. */
  readonly send: 'open' | 'held';
  /** The position to start from (in milliseconds), which is used if there is no position in Redis. */
  readonly sinceMs: number;
  readonly unordered: boolean;
  /** The maximum concurrent attempts. */
  readonly cap: number;
  /** The maximum number of attempts to start per second. Unlimited if absent. */
  readonly maxPerSecond?: number;
  /** The time at which the owner enabled the endpoint, in milliseconds. Failures before that do not count. */
  readonly enabledMs?: number;
  /** Endpoint configuration, sealed with the root key. This is empty if the subscription does not have an endpoint. */
  readonly endpoint: string;
}
