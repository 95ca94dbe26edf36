/** The subscriptions: two of them receive events, and one is covered by a block until the end. */
export const SUBSCRIPTIONS = ['ada', 'bob', 'blocked'] as const;
export type Subscription = (typeof SUBSCRIPTIONS)[number];

export const GROUP_KEYS = Array.from({ length: 64 }, (_, key) => `key-${key}`);
/** A group key that is not activated for any subscription. */
const CLOSED_KEY = 'key-63';
/** A group key that is activated for ada, and not for bob. */
const ADAS_KEY = 'key-62';

/** Returns whether a group key is activated for a subscription. */
export function isActive(subscription: Subscription, key: string): boolean {
  return key !== CLOSED_KEY && (key !== ADAS_KEY || subscription !== 'bob');
}

/** An event of the generator. All times are in milliseconds, using `performance.now()`. */
export interface SentEvent {
  /** The `webhook-id`, which is the same for each attempt to send the event. */
  readonly id: string;
  readonly key: string;
  readonly bytes: number;
  readonly plannedMs: number;
  /** The time of the 202 of ingress. If undefined, it is unknown whether the event is stored. */
  acknowledgedMs: number | undefined;
}

/** A request received by an endpoint. */
export interface Arrival {
  readonly subscription: Subscription;
  readonly id: string;
  readonly key: string;
  readonly atMs: number;
}

/** A fault, from its start until all affected processes work again. */
export interface Hit {
  readonly name: string;
  /** Whether it can prevent the result of an attempt from reaching Redis so that the attempt is repeated. */
  readonly losesResults: boolean;
  readonly fromMs: number;
  readonly toMs: number;
}

/** The number of claims in the part at each time. */
export interface Sample {
  readonly atMs: number;
  readonly claims: number;
}
