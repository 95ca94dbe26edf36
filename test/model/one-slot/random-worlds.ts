import * as fc from 'fast-check';
import type { Move } from './world/move.ts';
import { movesOf } from './world/moves.ts';
import { makeMove, settle } from './world/settle.ts';
import { newWorld, type Setup } from './world/world.ts';

export interface RandomOptions {
  /** The minimum number of moves in all histories together. */
  readonly steps: number;
  readonly seed: number;
  readonly worlds: readonly Setup[];
  /** A history printed by an earlier failure, including its seed. In this case, only this history is played. */
  readonly replay?: string | undefined;
  /** Set to false to print a counterexample as it was found. */
  readonly shrinks?: boolean;
}

const MOVES_EACH = 240;
const HISTORIES_AT_ONCE = 50;
/** The time for shrinking a counterexample, in milliseconds. The histories themselves take a fraction of it. */
const SHRINK_MS = 20_000;
const MOST_PICK = 9_999;

/** The relative frequency of each kind of move. */
const WEIGHTS: Readonly<Record<Move['kind'], number>> = {
  urgent: 12,
  endpoint: 8,
  sender: 6,
  tick: 4,
  free: 2,
  gate: 2,
  fault: 1,
};

function pickMove(moves: readonly Move[], pick: number): Move | undefined {
  const sum = moves.reduce((all, { kind }) => all + WEIGHTS[kind], 0);
  let left = (pick / (MOST_PICK + 1)) * sum;
  return moves.find(({ kind }) => (left -= WEIGHTS[kind]) < 0);
}

interface Played {
  readonly story: readonly string[];
  readonly ticks: number;
  readonly wrong?: string | undefined;
}

/** Plays a single history, which comes to rest at its end. */
function play(setup: Setup, picks: readonly number[]): Played {
  const story: string[] = [];
  let world = newWorld(setup);
  for (const pick of picks) {
    const move = pickMove(movesOf(world, setup), pick);
    if (move === undefined) break;
    story.push(move.label);
    world = makeMove(world, move);
    if (world.wrong !== '') return { story, ticks: 0, wrong: world.wrong };
  }
  const settled = settle(world, setup);
  const rest = settled.wrong === undefined ? [] : ['nothing breaks any more', ...settled.story];
  return { story: [...story, ...rest], ticks: settled.ticks, wrong: settled.wrong };
}

/**
 * Plays random histories until the given number of moves was made. If one of them fails, returns its shortened story.
 */
export function playWorlds({ steps, seed, worlds, replay, shrinks = true }: RandomOptions) {
  let [made, ticks] = [0, 0];
  const histories = fc.record({
    setup: fc.constantFrom(...worlds),
    picks: fc.array(fc.nat(MOST_PICK), { maxLength: MOVES_EACH, size: 'max' }),
  });
  const property = fc.property(histories, ({ setup, picks }) => {
    const { story, ticks: took, wrong } = play(setup, picks);
    made += story.length;
    ticks = Math.max(ticks, took);
    return wrong === undefined;
  });
  for (let round = 0; made < steps; round++) {
    const details = fc.check(property, {
      seed: seed + round,
      numRuns: HISTORIES_AT_ONCE,
      endOnFailure: !shrinks,
      interruptAfterTimeLimit: SHRINK_MS,
      markInterruptAsFailure: false,
      ...(replay === undefined ? {} : { path: replay }),
    });
    const shortest = details.counterexample?.[0];
    if (shortest !== undefined) {
      const { story, wrong } = play(shortest.setup, shortest.picks);
      const again = `again: make test-model SEED=${details.seed} HISTORY=${details.counterexamplePath?.split(':')[0]}`;
      return { made, ticks, failure: [...story, `=> ${wrong}`, again].join('\n') };
    }
    if (replay !== undefined) break;
  }
  return { made, ticks, failure: undefined };
}
