import { expect, test } from 'vitest';
import { turnsOf } from '../../test/support/event-loop-turns.ts';
import { createSlices } from './slices.ts';

/** A clock that advances by 1 ms whenever it is read. */
function createTickingClock() {
  let ms = 0;
  return () => ms++;
}

function* counting(name: string, pieces: number, story: string[]): Generator<undefined, string, undefined> {
  for (let i = 0; i < pieces; i++) {
    story.push(name);
    yield;
  }
  return `${name} ${pieces}`;
}

test('there is a turn of the event loop between two slices of a long calculation', async () => {
  const inSlices = createSlices(createTickingClock());
  const story: string[] = [];
  const work = inSlices(counting('a', 10_000, story));
  expect(story).toEqual([]);
  expect(await turnsOf(work)).toBeGreaterThan(50);
  expect(await work).toBe('a 10000');
});

test('a short calculation does not wait for the end of a long one', async () => {
  const inSlices = createSlices(createTickingClock());
  const story: string[] = [];
  const ends: string[] = [];
  const long = inSlices(counting('long', 10_000, story)).then(end => ends.push(end));
  const short = inSlices(counting('short', 3, story)).then(end => ends.push(end));
  await Promise.all([long, short]);
  expect(ends).toEqual(['short 3', 'long 10000']);
  expect(story.indexOf('short')).toBeLessThan(500);
});

test('many short calculations share a turn', async () => {
  const inSlices = createSlices(() => 0);
  const works = Array.from({ length: 100 }, (_, i) => inSlices(counting(`${i}`, 2, [])));
  expect(await turnsOf(Promise.all(works))).toBeLessThan(4);
});

test('an error only ends its own calculation', async () => {
  const inSlices = createSlices(createTickingClock());
  function* failing(): Generator<undefined, string, undefined> {
    yield;
    throw new Error('no result');
  }
  const works = [inSlices(failing()), inSlices(counting('b', 100, []))];
  expect(await Promise.allSettled(works)).toMatchObject([{ status: 'rejected' }, { value: 'b 100' }]);
});
