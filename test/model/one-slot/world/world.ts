import { hash } from 'node:crypto';
import type { Defect } from '../part/defects.ts';
import type { Completion, ExchangeCall, ExchangeReply } from '../part/exchange.ts';
import type { Message } from '../part/ingest.ts';
import type { Given } from '../part/lanes.ts';
import { emptyPart, inOrder, type Part } from '../part/part.ts';

/** Unread data in the push connection. */
export type Pushed = Message | 'fence';

/** A claim in a dispatcher. `answered`: the endpoint has received it, but the process does not know this yet. */
export interface Held extends Given {
  readonly state: 'queued' | 'sent' | 'answered';
  /** The time at which it was sent, and the event. */
  readonly sentAt?: number;
  readonly id?: string;
  /** Whether the claim was taken from the dispatcher, which does not know this yet. */
  readonly lapsedNow?: true;
}

export interface Dispatcher {
  readonly name: string;
  state: 'up' | 'stalled' | 'dead';
  /** The last time at which it was running. */
  up: number;
  /** The time since which nothing arrives on its open push connection, or 0 if it works. */
  deafSince: number;
  subscribed: boolean;
  socket: readonly Pushed[];
  held: readonly Held[];
  ended: readonly Completion[];
  /** The exchange in progress, before and after Redis ran it. */
  call: { readonly sent: ExchangeCall; readonly at: number; readonly reply: ExchangeReply | undefined } | null;
  /** The list of its own claims, which is compared after reading the fence. */
  mine: { readonly claims: readonly { lane: string; ref: number; mark: number }[]; readonly pushed: number } | null;
  calls: number;
  /** Pushed claims that it has read. */
  seen: number;
  /** The number of pushed claims according to the last response. */
  reported: number;
  /** The assumed difference between the Redis clock and its own clock. */
  skew: number;
  /** The time at which it sent the last exchange that received a response. */
  renewed: number;
  /** Whether there may be events to claim. */
  wanted: boolean;
  /** Whether it may have missed a claim. */
  doubts: boolean;
  /** Whether a slot is behind. */
  advances: boolean;
  furthest: boolean;
  /** The due time of the next retry that it knows, or 0. */
  due: number;
  /** The other dispatchers that it knows to be evicted. */
  gone: readonly string[];
  /** The positions it has read. Only kept by a defect. */
  positions: Readonly<Record<string, number>> | null;
  /** The slots it brought to the tail. Only kept by a defect. */
  arrived: readonly string[];
}

export interface Sender {
  readonly sent: number;
  readonly left: number;
  /** The response to its last event was lost, so it resends the event. */
  readonly repeats: boolean;
}

/** The responses received by the controller, separate from the part. Times are in ticks. */
export interface Gates {
  readonly open: Readonly<Record<string, boolean>>;
  /** The activation of each lane, as a ref. */
  readonly active: Readonly<Record<string, number>>;
  /** The time at which a slot or lane was last closed. */
  readonly closedAt: Readonly<Record<string, number>>;
  /** The ref up to which a slot was skipped. */
  readonly skipped: Readonly<Record<string, number>>;
}

/** The requests received by the endpoints. */
export interface History {
  /** The number of 2xx responses, by event and lane. */
  hits: Record<string, number>;
  /** The number of lapsed claims, by event and lane. */
  lapses: Record<string, number>;
  /** The ref of the last event that was delivered for the first time, by lane. */
  newest: Record<string, number>;
  /** The crashed dispatchers, by event and lane. */
  kills: Record<string, number>;
  failovers: number;
}

export interface World {
  now: number;
  /** The delay of the Redis clock. */
  skew: number;
  part: Part;
  gates: Gates;
  /** The state used after a failover. */
  replica: { readonly part: Part; readonly gates: Gates } | null;
  senders: Record<string, Sender>;
  dispatchers: Dispatcher[];
  /** Exchanges whose connection was closed before Redis read them. Redis may still read them. */
  underWay: readonly ExchangeCall[];
  /** An endpoint that no longer responds. */
  hangs: string;
  history: History;
  faultsLeft: number;
  gatesLeft: number;
  failuresLeft: number;
  ticksLeft: number;
  /** The number of moves that can still be made out of order. */
  preemptionsLeft: number;
  /** A rule violated in this state. */
  wrong: string;
}

export type Fault =
  | 'push lost'
  | 'connection drops'
  | 'deaf'
  | 'answer lost'
  | 'death'
  | 'stall'
  | 'failover'
  | 'clock goes back'
  | 'endpoint hangs'
  | 'send repeated'
  | 'suspicion';

export type GateOp = 'pause' | 'resume' | 'skip' | 'activate' | 'deactivate';

/** Returns the current event of a ref. A failover may lose this event, and another event may get the same ref. */
export const idOf = ({ part }: World, ref: number) => part.log.find(entry => entry.ref === ref)?.id ?? '';

/** The parameters of a history. */
export const cameTo = (lane: string, id: string) => `${lane} ${id}`;

/** A small world: its dispatchers, subscriptions, and keys, and the allowed faults. */
export interface Setup {
  readonly dispatchers: readonly string[];
  /** The maximum number of concurrent attempts, by slot. */
  readonly caps: Readonly<Record<string, number>>;
  /** The number of events, by group key. At first, each key is active for all slots. */
  readonly events: Readonly<Record<string, number>>;
  /** The number of events sent in one call, with different keys. */
  readonly batches?: boolean;
  /** The maximum number of claims of a dispatcher. */
  readonly limit: number;
  readonly faults: readonly Fault[];
  readonly mostFaults: number;
  readonly gates?: readonly GateOp[];
  /** The gates that can be changed. By default, these are the first slot and the first key. */
  readonly gated?: readonly [slot: string, groupKey: string];
  readonly mostGates?: number;
  /** The number of attempts that fail. */
  readonly failures?: number;
  readonly ticks: number;
  /**
   * The number of moves that can be made out of the order of `usualMove`. Faults and gate changes can happen at any
   * time.
   */
  readonly preemptions: number;
  readonly granted?: number;
  /** Either two dispatchers advance, or only the first one. */
  readonly homes?: 1 | 2;
  /** The event whose attempt crashes its dispatcher. */
  readonly poison?: string;
  /** The number of ticks within which all events must be delivered after the faults stop. */
  readonly bound: number;
  readonly defect?: Defect | undefined;
  /** The value used by `make test-model`. */
  readonly long?: Partial<Setup>;
}

/** The number of ticks after which a dispatcher checks for work without a message. */
export const RARELY = 8;
/** The number of ticks until a failed event is due again. */
export const RETRY_AFTER = 2;
export const MOST_ATTEMPTS = 3;
/** The maximum duration of an attempt, in ticks. */
export const TIMEOUT = 4;

export function newDispatcher(name: string, now: number): Dispatcher {
  return {
    name,
    state: 'up',
    up: now,
    deafSince: 0,
    subscribed: true,
    socket: [],
    held: [],
    ended: [],
    call: null,
    mine: null,
    calls: 0,
    seen: 0,
    reported: 0,
    skew: 0,
    renewed: now,
    wanted: true,
    doubts: false,
    advances: false,
    furthest: false,
    due: 0,
    gone: [],
    positions: null,
    arrived: [],
  };
}

const INITIALLY = 1;

export function newWorld(setup: Setup): World {
  const slots = Object.keys(setup.caps);
  const groupKeys = Object.keys(setup.events);
  const part: Part = {
    ...emptyPart(),
    meta: { ...emptyPart().meta, granted: setup.granted ?? 1_000 },
    subs: Object.fromEntries(slots.map(slot => [slot, { open: true, cap: setup.caps[slot] ?? 1, since: 0 }])),
    keys: Object.fromEntries(groupKeys.map(key => [key, Object.fromEntries(slots.map(slot => [slot, 0]))])),
  };
  const gates: Gates = {
    open: Object.fromEntries(slots.map(slot => [slot, true])),
    active: Object.fromEntries(slots.flatMap(slot => groupKeys.map(key => [slot + key, 0]))),
    closedAt: {},
    skipped: {},
  };
  return {
    now: INITIALLY,
    skew: 0,
    part,
    gates,
    replica: setup.faults.includes('failover') ? { part, gates } : null,
    senders: Object.fromEntries(
      groupKeys.map(key => [key, { sent: 0, left: setup.events[key] ?? 0, repeats: false }] as const),
    ),
    dispatchers: setup.dispatchers.map(name => newDispatcher(name, INITIALLY)),
    underWay: [],
    hangs: '',
    history: { hits: {}, lapses: {}, newest: {}, kills: {}, failovers: 0 },
    faultsLeft: setup.mostFaults,
    gatesLeft: setup.mostGates ?? 0,
    failuresLeft: setup.failures ?? 0,
    ticksLeft: setup.ticks,
    preemptionsLeft: setup.preemptions,
    wrong: '',
  };
}

/** A world that can be changed. Data below a dispatcher's own fields is replaced instead of being changed. */
export function copyWorld(world: World): World {
  const { history } = world;
  return {
    ...world,
    senders: { ...world.senders },
    dispatchers: world.dispatchers.map(dispatcher => ({ ...dispatcher })),
    history: {
      hits: { ...history.hits },
      lapses: { ...history.lapses },
      newest: { ...history.newest },
      kills: { ...history.kills },
      failovers: history.failovers,
    },
  };
}

const keys = new WeakMap<World, string>();

/** Returns a key that distinguishes worlds. */
export function keyOf(world: World): string {
  const known = keys.get(world);
  if (known !== undefined) return known;
  const { hits, lapses, newest } = world.history;
  const history = { ...world.history, hits: inOrder(hits), lapses: inOrder(lapses), newest: inOrder(newest) };
  const key = hash('sha1', JSON.stringify({ ...world, history }), 'base64');
  keys.set(world, key);
  return key;
}
