import { type Exploration, explore } from './state-space.ts';
import { movesOf } from './world/moves.ts';
import { makeMove, settle } from './world/settle.ts';
import { keyOf, newWorld, type Setup, type World } from './world/world.ts';

export interface Explored extends Exploration {
  /** The maximum number of ticks required by any state until everything is delivered. */
  readonly ticks: number;
}

/**
 * Tests every order of moves in a small world. From each state, all events must be delivered in time after the faults
 * stop.
 */
export function exploreWorld(setup: Setup): Explored {
  const known = new Map<string, number>();
  let most = 0;
  const exploration = explore<World>(
    newWorld(setup),
    state => movesOf(state, setup).map(move => [move.label, makeMove(state, move)] as const),
    state => {
      if (state.wrong !== '') return state.wrong;
      const { wrong, ticks, story } = settle(state, setup, known);
      most = Math.max(most, ticks);
      return wrong && [wrong, ...story].join('\n    then ');
    },
    keyOf,
  );
  return { ...exploration, ticks: most };
}
