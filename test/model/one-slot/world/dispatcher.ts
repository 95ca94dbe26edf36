import { hold } from '../../state/violation.ts';
import { checkHit, checkStart } from '../checks/endpoint-rules.ts';
import type { Completion, ExchangeCall, Outcome } from '../part/exchange.ts';
import type { Given } from '../part/lanes.ts';
import { AGE, MOST_LAPSES, slotOf } from '../part/part.ts';
import { run } from './redis.ts';
import {
  cameTo,
  type Dispatcher,
  type Held,
  idOf,
  MOST_ATTEMPTS,
  RARELY,
  RETRY_AFTER,
  type Setup,
  TIMEOUT,
  type World,
} from './world.ts';

const clamp = (value: number, least: number, most: number) => Math.min(Math.max(value, least), most);

const completionOf = ({ lane, ref, mark, due }: Held, outcome: Outcome, next = due): Completion => ({
  lane,
  ref,
  mark,
  outcome,
  due: next,
});

/**
 * Starts attempts up to the cap and returns claims that are too old because other dispatchers may have claimed them by
 * now.
 */
export function launch(world: World, setup: Setup, me: Dispatcher): void {
  const held: Held[] = [];
  for (const [index, claim] of me.held.entries()) {
    const slot = slotOf(claim.lane);
    const rest = me.held.slice(index);
    const sent = [...held, ...rest].filter(({ lane, state }) => slotOf(lane) === slot && state !== 'queued').length;
    if (claim.state !== 'queued') held.push(claim);
    else if (world.now - claim.at > AGE) me.ended = [...me.ended, completionOf(claim, 'returned')];
    else if (sent >= (setup.caps[slot] ?? 1)) held.push(claim);
    else if (setup.poison !== undefined && idOf(world, claim.ref) === setup.poison) {
      const entry = cameTo(claim.lane, setup.poison);
      const kills = (world.history.kills[entry] ?? 0) + 1;
      hold(16, kills <= MOST_LAPSES, () => `${entry} ended ${kills} dispatchers`);
      world.history.kills[entry] = kills;
      die(me);
      return;
    } else {
      checkStart(world, setup, claim);
      held.push({ ...claim, state: 'sent', sentAt: world.now, id: idOf(world, claim.ref) });
    }
  }
  me.held = held;
}

export function die(me: Dispatcher): void {
  Object.assign(me, { state: 'dead', socket: [], held: [], ended: [], call: null, mine: null, subscribed: false });
}

/** Ends an attempt. */
export function answerAttempt(world: World, setup: Setup, me: Dispatcher, claim: Held, delivered: boolean): void {
  if (delivered) checkHit(world, claim);
  if (me.state === 'stalled') {
    me.held = me.held.map(other => (other === claim ? { ...other, state: 'answered' } : other));
    return;
  }
  me.held = me.held.filter(other => other !== claim);
  const last = claim.attempts + 1 >= MOST_ATTEMPTS;
  const failed = last ? completionOf(claim, 'dead') : completionOf(claim, 'failed', world.now - me.skew + RETRY_AFTER);
  me.ended = [...me.ended, delivered ? completionOf(claim, 'delivered') : failed];
  launch(world, setup, me);
}

export function wake(world: World, setup: Setup, me: Dispatcher): void {
  Object.assign(me, { state: 'up', up: world.now });
  const answered = me.held.filter(({ state }) => state === 'answered');
  me.held = me.held.filter(({ state }) => state !== 'answered');
  me.ended = [...me.ended, ...answered.map(claim => completionOf(claim, 'delivered'))];
  launch(world, setup, me);
}

/**
 * Adds claims that have arrived. Their age is based on the Redis time instead of the time of reading because they may
 * have been unread for a while.
 */
function queue(world: World, setup: Setup, { skew }: Dispatcher, claims: readonly Given[]): Held[] {
  const fresh = setup.defect === 'age from the reading';
  return claims.map(given => ({ ...given, at: fresh ? world.now : given.at + skew, state: 'queued' }));
}

/** Reads the next message on the connection of the pushes. */
export function read(world: World, setup: Setup, me: Dispatcher): void {
  const [message, ...rest] = me.socket;
  me.socket = rest;
  if (message === 'fence') {
    if (setup.defect === 'fence before the list') list(world, setup, me);
    compare(me);
  } else if (message !== undefined) {
    if (message.to === me.name) {
      // The count shows whether an earlier push was missed.
      const missed = me.seen + message.claims.length !== message.pushed;
      if (missed && setup.defect !== 'pushes are not compared') me.doubts = true;
      me.seen = message.pushed;
      me.held = [...me.held, ...queue(world, setup, me, message.claims)];
    }
    if (message.waiting) me.wanted = true;
  }
  launch(world, setup, me);
}

/** Returns whether the dispatcher has to call Redis: with completions, to look for work, or to keep its claims. */
export const mustExchange = (world: World, me: Dispatcher) =>
  me.ended.length > 0 || me.wanted || (me.held.length > 0 && me.renewed < world.now);

export function sendExchange(world: World, setup: Setup, me: Dispatcher): void {
  me.calls++;
  const sent: ExchangeCall = {
    step: 'exchange',
    by: me.name,
    call: me.calls,
    // Pushed claims that have not arrived are either in progress or lost, and no more claims are taken until this is
    // known.
    limit: me.doubts ? Math.min(setup.limit, me.held.length) : setup.limit,
    seen: me.seen,
    held: me.held.length + me.ended.length,
    suspect: me.held.some(({ suspect }) => suspect),
    done: me.ended,
  };
  me.call = { sent, at: world.now, reply: undefined };
  me.ended = [];
  me.wanted = false;
}

export function readAnswer(world: World, setup: Setup, me: Dispatcher): void {
  const { call } = me;
  if (call?.reply === undefined) return;
  const { reply } = call;
  me.call = null;
  if (!reply.taken) {
    me.ended = [...call.sent.done, ...me.ended];
    me.wanted = true;
    return;
  }
  me.renewed = call.at;
  // Redis ran it after it was sent and before it was read. A skew outside of this range means that the clock was set.
  const [least, most] = [call.at - reply.now, world.now - reply.now];
  me.skew = setup.defect === 'clock is read once' ? Math.min(me.skew, most) : clamp(me.skew, least, most);
  me.held = [...me.held, ...queue(world, setup, me, reply.claims)];
  me.reported = Math.max(me.reported, reply.pushed);
  me.wanted ||= reply.more;
  me.advances ||= reply.behind;
  me.due = reply.due;
  launch(world, setup, me);
}

/** Loses the response of an exchange, regardless of whether Redis ran it. */
export function loseAnswer(world: World, setup: Setup, me: Dispatcher): void {
  const { call } = me;
  if (call === null) return;
  if (call.reply === undefined) world.underWay = [...world.underWay, call.sent];
  me.call = null;
  me.ended = [...call.sent.done, ...me.ended];
  me.wanted = true;
  if (setup.defect !== 'lost answer is not reconciled') me.doubts = true;
}

function list(world: World, setup: Setup, me: Dispatcher): void {
  me.calls++;
  const { claims, pushed } = run(world, setup, { step: 'mine', by: me.name, call: me.calls });
  me.mine = { claims, pushed };
}

/** Returns claims that the dispatcher neither holds nor has ended because it missed them. */
function compare(me: Dispatcher): void {
  if (me.mine === null) return;
  const known = new Set([...me.held, ...me.ended].map(({ mark }) => mark));
  const missed = me.mine.claims.filter(({ mark }) => !known.has(mark));
  me.ended = [...me.ended, ...missed.map(claim => ({ ...claim, outcome: 'returned' as const, due: 0 }))];
  me.seen = Math.max(me.seen, me.mine.pushed);
  me.mine = null;
  me.doubts = false;
  // The dispatcher accepts claims again.
  me.wanted = true;
}

/**
 * Requests the list of its own claims, followed by a fence: everything pushed before the list comes before the fence.
 */
export function askMine(world: World, setup: Setup, me: Dispatcher): void {
  if (setup.defect === 'fence before the list') me.mine = { claims: [], pushed: 0 };
  else list(world, setup, me);
  if (setup.defect === 'no fence') return compare(me);
  me.socket = [...me.socket, 'fence'];
}

export function resubscribe(me: Dispatcher): void {
  Object.assign(me, { subscribed: true, deafSince: 0, socket: [], mine: null, doubts: true, wanted: true });
}

export function dropConnection(me: Dispatcher): void {
  Object.assign(me, { subscribed: false, deafSince: 0, socket: [], mine: null });
}

/** Returns the actions of a dispatcher that are triggered by time. */
export function passTime(world: World, setup: Setup, me: Dispatcher): void {
  me.up = world.now;
  if (me.reported > me.seen && setup.defect !== 'pushes are not compared') me.doubts = true;
  if (me.due > 0 && me.due <= world.now - me.skew) me.wanted = true;
  // The push connection is checked as well.
  if (me.deafSince > 0 && world.now - me.deafSince >= 2 && setup.defect !== 'deaf connection is not noticed') {
    dropConnection(me);
  }
  for (const claim of me.held) {
    const late = claim.state === 'sent' && world.now - (claim.sentAt ?? world.now) >= TIMEOUT;
    if (late) answerAttempt(world, setup, me, claim, false);
  }
  if (world.now % RARELY === 0) me.wanted = true;
  launch(world, setup, me);
}
