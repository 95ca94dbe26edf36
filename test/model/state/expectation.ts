import type { DefinedSubscription, Definition } from './definition.ts';

export const RETENTION_MS = 3_600_000;

export interface ModelEvent {
  /** As the story calls it. */
  readonly name: string;
  readonly eventId: string;
  readonly stream: string;
  readonly streamUid: string;
  /** Empty: none. */
  readonly groupKey: string;
  readonly body: string;
  /** Of its part. */
  readonly ref: string;
  readonly acceptedMs: number;
  /**
   * False: the event was stored, but ingress crashed before responding. It may be unknown until it is published again.
   */
  acknowledged: boolean;
  /** The event was lost by Redis. */
  lost: boolean;
}

/** An open delivery of an inbox, either the first delivery of an event or a replay. */
export interface OpenDelivery {
  readonly event: ModelEvent;
  readonly replayId: string | undefined;
  attempts: number;
  /** No attempt before; 0: at once. */
  dueMs: number;
}

/** The identifier of a delivery in an inbox, its records, and its attempts. */
export function deliveryName(ref: string, replayId: string | undefined): string {
  return replayId === undefined ? ref : `${ref}:${replayId}`;
}

export const FINALS = ['delivered', 'dead', 'expired', 'skipped'] as const;
export type Final = (typeof FINALS)[number];

export type Decision = 'route' | 'refuse';

/** An event that has not been routed for a subscription yet, and its possible dispositions. */
export interface Undecided {
  readonly event: ModelEvent;
  readonly may: Set<Decision>;
}

/** The state of a subscription (one uid) since its creation, even after its deletion. */
export interface Receiver {
  readonly uid: string;
  readonly name: string;
  readonly integration: string;
  readonly stream: string;
  readonly unordered: boolean;
  readonly slot: string;
  readonly undecided: Map<string, Undecided>;
  readonly routed: Map<string, ModelEvent>;
  /** The names of deliveries created by replays. */
  readonly replayed: Set<string>;
  /** By name of the delivery. */
  readonly open: Map<string, OpenDelivery>;
  /** The final result, by delivery name. */
  readonly final: Map<string, Final>;
  /** Those whose records have gone with their events. */
  readonly forgotten: Set<string>;
  /** It is being deleted together with its inbox, so the inbox may already be empty. */
  leaving: boolean;
  /** The endpoint responded with 410 and has not been enabled in an effective way since then. */
  disabled?: boolean;
  /** The object has been deleted, so its inbox must not change anymore. */
  ended: boolean;
}

export function createReceiver(
  { uid, name, integration, stream }: DefinedSubscription,
  slot: string,
  unordered: boolean,
): Receiver {
  return {
    uid,
    name,
    integration,
    stream,
    slot,
    unordered,
    undecided: new Map(),
    routed: new Map(),
    replayed: new Set(),
    open: new Map(),
    final: new Map(),
    forgotten: new Set(),
    leaving: false,
    ended: false,
  };
}

/** The data in the part of its stream has been lost. */
export function emptyReceiver({ undecided, routed, replayed, open, final }: Receiver): void {
  for (const each of [undecided, routed, replayed, open, final]) each.clear();
}

/**
 * The disposition of an event that is accepted, or waiting, while a definition is in force. A pause delays the decision
 * until its end. A refused event stays refused because a key that is opened again is only open for later events.
 */
export function decide(
  { streamUid, groupKey }: ModelEvent,
  { uid, integration }: Pick<Receiver, 'uid' | 'integration'>,
  { subscriptions, gates }: Definition,
): Decision {
  const subscription = subscriptions.get(uid);
  const closed = subscription === undefined || subscription.route === 'closed' || subscription.streamUid !== streamUid;
  return closed || groupKey === '' || !gates.has(`${integration}/${groupKey}`) ? 'refuse' : 'route';
}
