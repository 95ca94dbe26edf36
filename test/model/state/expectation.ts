import { type DefinedSubscription, type Definition } from './definition.ts';

/** Rule 5: younger entries pass by what is applied at routing alone. */
export const YOUNG_MS = 10_000;
/** Rule 5: grace towards `since` of older entries. */
export const SINCE_GRACE_MS = 2_000;
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

export const FINALS = ['delivered', 'dead', 'skipped', 'expired'] as const;
export type Final = (typeof FINALS)[number];

/** What is known of one subscription (one uid), from its first day on, also when it is gone. */
export interface Receiver {
  readonly uid: string;
  readonly name: string;
  readonly integration: string;
  readonly stream: string;
  readonly unordered: boolean;
  /**
   * Events that are not decided yet, each with what may have been decided by a router that died: its batch may be in
   * the inbox, or not.
   */
  readonly undecided: Map<string, { readonly event: ModelEvent; readonly maybe: Set<boolean> }>;
  readonly routed: Map<string, ModelEvent>;
  /** Of those, what came from a router that died before it moved its position: it comes again if the inbox is lost. */
  readonly unsure: Map<string, ModelEvent>;
  /** Names of the deliveries that replays brought. */
  readonly replayed: Set<string>;
  /** By name of the delivery. */
  readonly open: Map<string, OpenDelivery>;
  /** How it ended, by name of the delivery: for good. */
  readonly final: Map<string, Final>;
  /** What its producer was charged for it. */
  tokens: number;
  /** It is being deleted together with its inbox: what lies there may be gone. */
  leaving: boolean;
  /** Its endpoint answered 410, and nobody has said since, where it counts, that it works again. */
  disabled?: boolean;
  /** The object is gone: nothing may happen in its inbox any more. */
  ended: boolean;
}

export function createReceiver({ uid, name, integration, stream }: DefinedSubscription, unordered: boolean): Receiver {
  return {
    uid,
    name,
    integration,
    stream,
    unordered,
    undecided: new Map(),
    routed: new Map(),
    unsure: new Map(),
    replayed: new Set(),
    open: new Map(),
    final: new Map(),
    tokens: 0,
    leaving: false,
    ended: false,
  };
}

/** Since when what opens the way is open, as Redis keeps it; undefined: it is not (known to be) open. */
export interface Since {
  readonly activationMs: number | undefined;
  /** The later of acceptance and subscription. */
  readonly floorMs: number | undefined;
  /** Where the last pause ended that said SkipToNow: nothing that was accepted before comes any more; 0: nowhere. */
  readonly skipToMs: number;
}

export type Decision = 'route' | 'refuse' | 'hold';

/**
 * What routing has to make of an event for a subscription, now: the definition of `allowed`, and rule 5 for what has
 * waited. Several where it cannot be known.
 */
export function decide(
  event: ModelEvent,
  receiver: Pick<Receiver, 'uid' | 'integration'>,
  defined: Definition,
  since: Since,
  nowMs: number,
): ReadonlySet<Decision> {
  const subscription = defined.subscriptions.get(receiver.uid);
  const route = subscription === undefined ? 'closed' : subscription.route;
  if (route === 'closed' || subscription?.streamUid !== event.streamUid || event.groupKey === '') return REFUSE;
  const active = defined.gates.has(`${receiver.integration}/${event.groupKey}`);
  // Whether the main pass noted it as not activated, or left it behind, depends on its neighbours; no difference.
  if (route === 'paused') return active ? HOLD : REFUSE_OR_HOLD;
  if (!active) return REFUSE;
  const age = nowMs - event.acceptedMs;
  // What is older than retention may be removed before it is looked at.
  if (age > RETENTION_MS) return ANY;
  if (event.acceptedMs < since.skipToMs) return REFUSE;
  if (age <= YOUNG_MS) return ROUTE;
  if (since.activationMs === undefined || since.floorMs === undefined) return ANY;
  const passes = event.acceptedMs >= Math.max(since.activationMs, since.floorMs) - SINCE_GRACE_MS;
  return passes ? ROUTE : REFUSE;
}

const ROUTE: ReadonlySet<Decision> = new Set(['route']);
const REFUSE: ReadonlySet<Decision> = new Set(['refuse']);
const HOLD: ReadonlySet<Decision> = new Set(['hold']);
const REFUSE_OR_HOLD: ReadonlySet<Decision> = new Set(['refuse', 'hold']);
const ANY: ReadonlySet<Decision> = new Set(['route', 'refuse']);
