import { Violation } from '../../state/violation.ts';
import { entryOf, slotOf } from '../part/part.ts';
import type { Move } from './move.ts';
import { urgentMoves, usualMove } from './moves.ts';
import { cameTo, copyWorld, keyOf, type Setup, type World } from './world.ts';

/** The world after a move, including any violated rule. */
export function makeMove(world: World, { run }: Move): World {
  const next = copyWorld(world);
  try {
    run(next);
  } catch (error) {
    if (!(error instanceof Violation)) throw error;
    next.wrong = error.message;
  }
  return next;
}

/** Returns events that still have to be delivered because their gates are open and their endpoints respond. */
function owed({ part, gates, hangs, senders }: World): string | undefined {
  const due = (slot: string) => gates.open[slot] === true && slot !== hangs;
  for (const [groupKey, { left, repeats }] of Object.entries(senders)) {
    if (left > 0 || repeats) return `${groupKey} is not sent`;
  }
  if (part.meta.hold !== '') return `the part is held: ${part.meta.hold}`;
  for (const slot of Object.keys(part.subs)) {
    if (gates.open[slot] === true && part.pos[slot] !== undefined) return `${slot} is behind`;
  }
  const open = [...Object.keys(part.claims), ...Object.keys(part.pend)];
  return open.find(lane => {
    // Events of inactive keys wait for an activation, and their claims end.
    const waits = gates.active[lane] === undefined && part.claims[lane] === undefined;
    return due(slotOf(lane)) && !waits;
  });
}

/** Checks that both sides have the same claims when there is no more work. */
function disagreement({ part, dispatchers }: World): string | undefined {
  const by = (name: string) => Object.keys(part.claims).filter(lane => part.claims[lane]?.by === name);
  for (const { name, state, held, doubts } of dispatchers) {
    if (state !== 'up' || doubts) continue;
    const claims = by(name);
    if (claims.length !== held.length) return `${name} holds ${held.length}, and has ${claims.length} claims`;
    const reported = part.ready[name]?.held ?? 0;
    if (reported !== claims.length) return `${name} is taken to hold ${reported} of ${claims.length} claims`;
  }
  return undefined;
}

/** Checks that events recorded as delivered have arrived. */
function neverCame({ part, history }: World): string | undefined {
  for (const { ref, id, groupKey } of part.log) {
    for (const slot of Object.keys(part.subs)) {
      if (part.records[entryOf(slot + groupKey, ref)] !== 'delivered') continue;
      if ((history.hits[cameTo(slot + groupKey, id)] ?? 0) === 0) return `${id} never came to ${slot}`;
    }
  }
  return undefined;
}

export interface Settled {
  /** The number of ticks. */
  readonly ticks: number;
  readonly wrong?: string | undefined;
  readonly story: readonly string[];
}

const MOST_MOVES = 2_000;

/**
 * Runs a world without further faults until it comes to rest, always in the same way, and counts the ticks. `known`:
 * the number of ticks for states that were visited on the way from other states. It is a violation if this takes longer
 * than the limit of the setup.
 */
export function settle(world: World, setup: Setup, known?: Map<string, number>): Settled {
  const story: string[] = [];
  const path: [key: string, ticks: number][] = [];
  let ticks = 0;
  let rest: number | undefined;
  let state = world;
  let still: string | undefined = 'nothing was tried';
  for (let moves = 0; rest === undefined; moves++) {
    if (state.wrong !== '') return { ticks, wrong: state.wrong, story };
    const busy = urgentMoves(state, setup).length > 0 || usualMove(state, setup).kind === 'endpoint';
    if (!busy) still = owed(state) ?? disagreement(state);
    if (still === undefined) {
      const wrong = neverCame(state);
      if (wrong !== undefined) return { ticks, wrong, story };
      rest = 0;
      break;
    }
    if (known !== undefined) {
      const key = keyOf(state);
      rest = known.get(key);
      if (rest !== undefined) break;
      path.push([key, ticks]);
    }
    if (ticks > setup.bound || moves > MOST_MOVES) {
      return { ticks, wrong: `${still} after ${ticks} ticks and ${moves} moves`, story };
    }
    const move = usualMove(state, setup);
    story.push(move.label);
    if (move.kind === 'tick') ticks++;
    state = makeMove(state, move);
  }
  for (const [key, at] of path) known?.set(key, ticks - at + (rest ?? 0));
  const all = ticks + (rest ?? 0);
  return all > setup.bound
    ? { ticks: all, wrong: `${all} ticks until all is delivered`, story }
    : { ticks: all, story };
}
