import type { Defect } from './defects.ts';

/**
 * The content of one part of a stream. Everything between accepting and ending an event is stored in one Redis slot,
 * and each step here is a single script. The steps are pure functions of a part and the call arguments and do not
 * depend on processes. A test can apply the same calls to this part and to a part in Redis and compare the results.
 *
 * A slot is one character here, and a lane is its slot followed by its group key. Times are whole ticks. What lies
 * inside the records and lists below is never changed, but replaced: a copy of a part copies only those.
 */
export interface Part {
  readonly meta: Meta;
  /** P:log. It is never trimmed in this model. */
  readonly log: Entry[];
  /** P:id: the ref by the id of the sender. */
  readonly ids: Record<string, number>;
  /** P:keys: the ref of the tail when the key was activated, by group key and slot. */
  readonly keys: Record<string, Readonly<Record<string, number>>>;
  readonly subs: Record<string, Subscription>;
  /** P:pos: the last ref routed to a slot that is behind. A slot is behind if it has a position. */
  readonly pos: Record<string, number>;
  /** P:late: the slots to which an event was routed after it was stored, by ref. */
  readonly late: Record<number, readonly string[]>;
  /** P:cl: the claimed first event of each lane. */
  readonly claims: Record<string, Claim>;
  /** P:lane: lanes that are waiting or have a retry. All other lanes that are not claimed are idle. */
  readonly lanes: Record<string, 'w' | 'r'>;
  /** P:pend: the open refs of each lane in ascending order, without the claimed first event. */
  readonly pend: Record<string, readonly number[]>;
  /**
   * P:wait: see `waitMember`. Ascending. May contain members of lanes that are no longer waiting or have a later
   * member.
   */
  readonly wait: string[];
  /** P:turn: the time at which a slot with waiting lanes was last served. */
  readonly turn: Record<string, number>;
  /** P:retry: the time at which the first event of a lane is due. */
  readonly retry: Record<string, number>;
  /** P:try: see `entryOf`. */
  readonly tries: Record<string, Tries>;
  /** P:off: lanes whose key was deactivated while an event was waiting. */
  readonly off: Record<string, true>;
  readonly counts: Record<string, Counts>;
  /** P:rec: see `entryOf`. */
  readonly records: Record<string, 'delivered' | 'dead'>;
  /** P:ready: dispatchers by name. */
  readonly ready: Record<string, Ready>;
}

export interface Meta {
  /** Whether the gate data is complete. Otherwise, no events are routed. */
  readonly ready: boolean;
  /** The last ref is `ms` × 100 + `seq`. */
  readonly ms: number;
  readonly seq: number;
  readonly used: number;
  readonly granted: number;
  /** The reason why all slots that are not behind remain at `pos`. */
  readonly hold: '' | 'gates' | 'tokens' | 'wide';
  readonly pos: number;
  /** The time of the last claim. In Redis, this uses TIME in µs. */
  readonly mark: number;
  /** The number of the last served slot. */
  readonly served: number;
}

export interface Entry {
  readonly ref: number;
  readonly id: string;
  readonly groupKey: string;
  readonly cost: number;
  /** The slots to which the event was routed when it was stored. */
  readonly routed: readonly string[];
}

export interface Subscription {
  readonly open: boolean;
  /** The maximum number of concurrent attempts. */
  readonly cap: number;
  /** The ref of the tail at the time of creation. */
  readonly since: number;
}

export interface Claim {
  readonly ref: number;
  readonly by: string;
  /** Identifies the claim: a later claim of the same event by the same dispatcher has a different number. */
  readonly mark: number;
  readonly at: number;
  /** `+`: more events are waiting after it. `-`: no events may follow because the key was deactivated. */
  readonly flag: ' ' | '+' | '-';
  /** The event has failed before. */
  readonly again: boolean;
}

export interface Tries {
  readonly attempts: number;
  readonly lapses: number;
}

export interface Counts {
  readonly claims: number;
  /** Claims of events that have failed before. */
  readonly again: number;
  readonly routed: number;
  readonly delivered: number;
  readonly failed: number;
  /** Whether lanes are waiting. This may remain true for a while after the last lane has stopped waiting. */
  readonly waiting: boolean;
  /** Whether its endpoint is so slow that claims beyond the cap are returned without an attempt. */
  readonly slow: boolean;
  /** The dispatcher that holds all claims, or `*` for several dispatchers. */
  readonly sole: string;
}

export interface Ready {
  /** The time of its last write. */
  readonly renewed: number;
  /** Whether nothing is pushed to it until it writes again. */
  readonly until: number;
  /** The number of its last call, which is used to reject late calls. */
  readonly call: number;
  readonly limit: number;
  readonly held: number;
  /** The total number of claims pushed to it. */
  readonly pushed: number;
}

/** The context of a step, in addition to its arguments. */
export interface Context {
  /** The time returned by TIME. */
  readonly now: number;
  readonly defect?: Defect | undefined;
}

/** The maximum number of references written by a call. */
export const MOST_REFERENCES = 2;
/** The maximum number of log entries that `advance` reads. */
export const MOST_ENTRIES = 3;
/** The maximum number of claims returned by an `exchange`. */
export const MOST_CLAIMS = 3;
/** The number of ticks after a write during which claims are pushed to a dispatcher. */
export const LEASE = 4;
/** The number of ticks after which a claim expires if its dispatcher doesn't write anything. */
export const DEAD = 3;
/** A dispatcher does not start an attempt if its claim is more than this number of ticks old. */
export const AGE = 1;
/** The number of lapses after which an event is dead. */
export const MOST_LAPSES = 4;
/** The number of expired claims after which an event may be crashing its dispatchers. */
export const SUSPECT = 2;

export const slotOf = (lane: string) => lane.charAt(0);
export const groupKeyOf = (lane: string) => lane.slice(1);
/** Returns the key used for records and tries. */
export const entryOf = (lane: string, ref: number) => `${lane} ${ref}`;
export const tailOf = ({ meta }: Part) => meta.ms * 100 + meta.seq;

/** Returns the slot, class, due time, and group key. Within a class, members that are due first come first. */
export function waitMember(lane: string, again: boolean, due: number): string {
  return `${slotOf(lane)}${again ? 1 : 0}${String(due).padStart(4, '0')}${groupKeyOf(lane)}`;
}

export function readWaitMember(member: string): { lane: string; again: boolean; due: number } {
  return {
    lane: member.charAt(0) + member.slice(6),
    again: member.charAt(1) === '1',
    due: Number(member.slice(2, 6)),
  };
}

const NO_COUNTS: Counts = {
  claims: 0,
  again: 0,
  routed: 0,
  delivered: 0,
  failed: 0,
  waiting: false,
  slow: false,
  sole: '',
};
export const countsOf = (part: Part, slot: string): Counts => part.counts[slot] ?? NO_COUNTS;

/** Returns the position up to which a slot is routed. */
export function positionOf(part: Part, slot: string): number {
  return part.pos[slot] ?? (part.meta.hold === '' ? tailOf(part) : part.meta.pos);
}

export const isRoutedTo = (part: Part, entry: Entry, slot: string) =>
  entry.routed.includes(slot) || (part.late[entry.ref]?.includes(slot) ?? false);

export function emptyPart(): Part {
  return {
    meta: { ready: true, ms: 0, seq: 0, used: 0, granted: 1_000, hold: '', pos: 0, mark: 0, served: 0 },
    log: [],
    ids: {},
    keys: {},
    subs: {},
    pos: {},
    late: {},
    claims: {},
    lanes: {},
    pend: {},
    wait: [],
    turn: {},
    retry: {},
    tries: {},
    off: {},
    counts: {},
    records: {},
    ready: {},
  };
}

/** The state that a step may change while it runs. */
export type Draft = { -readonly [K in keyof Part]: Part[K] };

/** Returns the same record with sorted keys, so that equal parts are always written in the same way. */
export function inOrder<T>(record: Readonly<Record<string, T>>): Record<string, T> {
  const keys = Object.keys(record);
  if (keys.every((key, i) => i === 0 || (keys[i - 1] as string) < key)) return record;
  return Object.fromEntries(keys.sort().map(key => [key, record[key] as T]));
}

export function partOf(draft: Draft): Part {
  return {
    ...draft,
    ids: inOrder(draft.ids),
    keys: inOrder(draft.keys),
    pos: inOrder(draft.pos),
    claims: inOrder(draft.claims),
    lanes: inOrder(draft.lanes),
    pend: inOrder(draft.pend),
    turn: inOrder(draft.turn),
    retry: inOrder(draft.retry),
    tries: inOrder(draft.tries),
    off: inOrder(draft.off),
    counts: inOrder(draft.counts),
    records: inOrder(draft.records),
    ready: inOrder(draft.ready),
  };
}

export function draftOf(part: Part): Draft {
  return {
    meta: part.meta,
    log: [...part.log],
    ids: { ...part.ids },
    keys: { ...part.keys },
    subs: { ...part.subs },
    pos: { ...part.pos },
    late: { ...part.late },
    claims: { ...part.claims },
    lanes: { ...part.lanes },
    pend: { ...part.pend },
    wait: [...part.wait],
    turn: { ...part.turn },
    retry: { ...part.retry },
    tries: { ...part.tries },
    off: { ...part.off },
    counts: { ...part.counts },
    records: { ...part.records },
    ready: { ...part.ready },
  };
}
