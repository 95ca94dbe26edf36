import type { DefinedSubscription, Definition } from './definition.ts';

export const RETENTION_MS = 3_600_000;

export interface ModelEvent {
  /** The name of the event in the story. */
  readonly name: string;
  readonly eventId: string;
  readonly stream: string;
  readonly streamUid: string;
  /** The group key. Empty if there is none. */
  readonly groupKey: string;
  readonly body: string;
  /** The generation of its part. */
  readonly ref: string;
  readonly acceptedMs: number;
  /**
   * False if the event was stored, but ingress crashed before responding. It may be unknown until it is published
   * again.
   */
  acknowledged: boolean;
  /** Whether Redis has lost the event. */
  lost: boolean;
}

/** An open delivery of an inbox, either the first delivery of an event or a replay. */
export interface OpenDelivery {
  readonly event: ModelEvent;
  readonly replayId: string | undefined;
  attempts: number;
  /** The earliest time of the next attempt. 0 if it is due immediately. */
  dueMs: number;
}

/** Returns the identifier of a delivery in an inbox, its records, and its attempts. */
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
  /** Deliveries by name. */
  readonly open: Map<string, OpenDelivery>;
  /** The final result, by delivery name. */
  readonly final: Map<string, Final>;
  /** Deliveries whose records were removed with their events. */
  readonly forgotten: Set<string>;
  /** Whether the subscription is being deleted together with its inbox, so the inbox may already be empty. */
  leaving: boolean;
  /** Whether the endpoint responded with 410 and has not been enabled in an effective way since then. */
  disabled?: boolean;
  /** Whether the object has been deleted, so its inbox must not change anymore. */
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

/** Records that the data in the part of its stream was lost. */
export function emptyReceiver({ undecided, routed, replayed, open, final }: Receiver): void {
  for (const each of [undecided, routed, replayed, open, final]) each.clear();
}

/**
 * Returns the disposition of an event that is accepted or waiting while a definition is in force. A pause delays the
 * decision until its end. A refused event remains refused because a key that is reopened is only open for later
 * events.
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
