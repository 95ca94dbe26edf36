import { describe, expect, test } from 'vitest';
import { exploreWorld } from './explore-world.ts';
import { LARGE_WORLDS } from './large-worlds.ts';
import { RARE, SYMPTOMS } from './mistakes.ts';
import { DEFECTS, type Defect } from './part/defects.ts';
import { playWorlds } from './random-worlds.ts';
import { SMALL_WORLDS } from './small-worlds.ts';
import { settle } from './world/settle.ts';
import { type Dispatcher, newWorld, type Setup } from './world/world.ts';

/**
 * A model of a data plane that stores a stream, its lanes, and its subscriptions in a single Redis slot. Nothing in
 * `src` works this way yet: the scripts are written against this model.
 *
 * - `part/`: what a part holds, and one pure function per script. These are the reference: `runStep(part, call)` answers
 *   with a reply, the next part and what is published. They don't depend on processes, so the same calls can be applied
 *   to a part in Redis.
 * - `world/`: senders, dispatchers, endpoints, the controller's gates, and faults. A move is one thing that happens.
 *   `settle` disables further faults and counts the ticks until all remaining events are delivered.
 * - `checks/`: what must hold, with the number of the invariant. Checks keep their own account of gates and of what came
 *   to the endpoints, and judge every step by it.
 * - `small-worlds.ts`: gone through exhaustively, with a bounded number of faults and of moves out of their usual order.
 *   `large-worlds.ts`: for random histories. `part/defects.ts`: defects that these searches must find.
 */

/** `make test-model` sets it: a move of this model takes a fraction of what a step with Redis takes. */
const LONG = process.env.STEPS !== undefined;
const STEPS = LONG ? 10 * Number(process.env.STEPS || 20_000) : 5_000;
const SEED = Number(process.env.SEED || 1);
const HISTORY = process.env.HISTORY || undefined;

describe('every order of what may happen in a small world', () => {
  test.each(Object.entries(SMALL_WORLDS))(
    '%s: nothing is lost, and all is delivered in time',
    {
      timeout: 600_000,
    },
    (_, setup) => {
      const { states, counterexample, ticks } = exploreWorld(LONG ? { ...setup, ...setup.long } : setup);
      expect(counterexample).toBeUndefined();
      expect(states).toBeGreaterThan(500);
      expect(ticks).toBeLessThanOrEqual(setup.bound);
    },
  );
});

/** Fifty lanes in each of two subscriptions. */
const FIFTY: Setup = {
  dispatchers: ['x', 'y'],
  caps: { a: 2, b: 2 },
  events: Object.fromEntries(Array.from({ length: 50 }, (_, key) => [`k${key}`, 2])),
  limit: 6,
  faults: [],
  mostFaults: 0,
  ticks: 0,
  preemptions: 0,
  bound: 1,
};

describe('what one does delays no other', () => {
  test('fifty lanes of a hanging endpoint do not delay the events of another subscription', () => {
    const { wrong, ticks } = settle({ ...newWorld(FIFTY), hangs: 'a' }, FIFTY);
    expect(wrong).toBeUndefined();
    expect(ticks).toBeLessThanOrEqual(1);
  });

  test('delivers events that were pushed to a dispatcher that does not read after its connection is closed', () => {
    const setup = { ...FIFTY, bound: 3 };
    const world = newWorld(setup);
    const [x, y] = world.dispatchers as [Dispatcher, Dispatcher];
    const { wrong, ticks } = settle({ ...world, dispatchers: [{ ...x, deafSince: world.now }, y] }, setup);
    expect(wrong).toBeUndefined();
    expect(ticks).toBeGreaterThan(0);
  });

  test('a dispatcher has no room left for others where it may hold less than hanging endpoints may claim', () => {
    const setup = { ...FIFTY, dispatchers: ['x'], limit: 2 };
    expect(settle({ ...newWorld(setup), hangs: 'a' }, setup).wrong).toMatch(/after/);
  });
});

test(`random histories of larger worlds, ${STEPS} moves`, { timeout: 60_000 + STEPS }, () => {
  const { made, failure } = playWorlds({ steps: STEPS, seed: SEED, worlds: LARGE_WORLDS, replay: HISTORY });
  if (failure !== undefined) throw new Error(failure);
  expect(made).toBeGreaterThanOrEqual(HISTORY === undefined ? STEPS : 1);
});

/** The effect of a defect, in the world that shows it or in random histories. */
function search(defect: Defect): string | undefined {
  const rare: Setup | undefined = RARE[defect];
  if (rare !== undefined) return exploreWorld({ ...rare, defect }).counterexample?.wrong;
  const worlds = LARGE_WORLDS.map(setup => ({ ...setup, defect }));
  return playWorlds({ steps: 20_000, seed: 1, worlds, shrinks: false }).failure;
}

test.each(DEFECTS)('found: %s', defect => {
  expect(search(defect)).toMatch(SYMPTOMS[defect]);
});
