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
  /** False: stored, but ingress died before it said so; nobody has to look at it before it is published again. */
  acknowledged: boolean;
  /** Redis has lost it. */
  lost: boolean;
}

/** An open delivery of an inbox: of an event for the first time, or again by a replay. */
export interface OpenDelivery {
  readonly event: ModelEvent;
  readonly replayId: string | undefined;
  attempts: number;
  /** No attempt before; 0: at once. */
  dueMs: number;
}

/** What an inbox, its records and its attempts know a delivery by. */
export function deliveryName(ref: string, replayId: string | undefined): string {
  return replayId === undefined ? ref : `${ref}:${replayId}`;
}

export const FINALS = ['delivered', 'dead', 'expired', 'skipped'] as const;
export type Final = (typeof FINALS)[number];

export type Decision = 'route' | 'refuse';

/** An event that routing has not passed for a subscription, and what it may still be decided. */
export interface Undecided {
  readonly event: ModelEvent;
  readonly may: Set<Decision>;
}

/** What is known of one subscription (one uid), from its first day on, also when it is gone. */
export interface Receiver {
  readonly uid: string;
  readonly name: string;
  readonly integration: string;
  readonly stream: string;
  readonly unordered: boolean;
  readonly slot: string;
  readonly undecided: Map<string, Undecided>;
  readonly routed: Map<string, ModelEvent>;
  /** Names of the deliveries that replays brought. */
  readonly replayed: Set<string>;
  /** By name of the delivery. */
  readonly open: Map<string, OpenDelivery>;
  /** How it ended, by name of the delivery: for good. */
  readonly final: Map<string, Final>;
  /** It is being deleted together with its inbox: what lies there may be gone. */
  leaving: boolean;
  /** Its endpoint answered 410, and nobody has said since, where it counts, that it works again. */
  disabled?: boolean;
  /** The object is gone: nothing may happen in its inbox any more. */
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
    leaving: false,
    ended: false,
  };
}

/** What lay in the part of its stream is gone. */
export function emptyReceiver({ undecided, routed, replayed, open, final }: Receiver): void {
  for (const each of [undecided, routed, replayed, open, final]) each.clear();
}

/**
 * What a definition says of an event that is accepted, or waits, while it is in force. A pause leaves the decision to its end;
 * what was refused once stays refused, since a key that opens again is open for what comes after.
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
