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
 * A model of a data plane that stores a stream, its lanes, and its subscriptions in a single Redis slot. The scripts in
 * `src/part` were written against this model.
 *
 * - `part/`: the content of a part, and one pure function for each script. `runStep(part, call)` returns a reply, the
 *   next part, and the published messages. The functions do not depend on processes, so the same calls can be applied
 *   to a part in Redis.
 * - `world/`: senders, dispatchers, endpoints, the controller's gates, and faults. A move is a single step of the
 *   world. `settle` disables further faults and counts the ticks until all remaining events are delivered.
 * - `checks/`: the rules, with the number of the invariant. Checks record gates and the requests to the endpoints
 *   separately, and use these records to check every step.
 * - `small-worlds.ts`: worlds that are explored completely, with a limited number of faults and of moves out of their
 *   usual order. `large-worlds.ts`: worlds for random histories. `part/defects.ts`: defects that these searches must
 *   find.
 */

/** Set by `make test-model`. A move of this model takes a fraction of the time of a step with Redis. */
const LONG = process.env.STEPS !== undefined;
const STEPS = LONG ? 10 * Number(process.env.STEPS || 20_000) : 5_000;
const SEED = Number(process.env.SEED || 1);
const HISTORY = process.env.HISTORY || undefined;

describe('every order of moves in a small world', () => {
  test.each(Object.entries(SMALL_WORLDS))(
    '%s: no events are lost, and all events are delivered in time',
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

describe('delays', () => {
  test('fifty lanes of an endpoint that does not respond do not delay the events of another subscription', () => {
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

  test('a dispatcher has no room for other events if silent endpoints can claim more than its limit', () => {
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

test.each(DEFECTS)('is detected: %s', defect => {
  expect(search(defect)).toMatch(SYMPTOMS[defect]);
});
