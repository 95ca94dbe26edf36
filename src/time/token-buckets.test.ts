import { expect, test } from 'vitest';
import { createTokenBuckets } from './token-buckets.ts';

function create(capacity = 60, entries = 100) {
  const clock = { ms: 0 };
  const buckets = createTokenBuckets({ capacity, refillMs: 60_000, entries, nowMs: () => clock.ms });
  return { clock, ...buckets };
}

test('a cost is taken completely or not at all', () => {
  const { take, stateOf } = create(12);
  expect(take('ada', 10)).toBe(true);
  expect(take('ada', 5)).toBe(false);
  expect(stateOf('ada', 5)).toEqual({ left: 2, fullInSeconds: 50, retryInSeconds: 15 });
  expect(take('ada', 2)).toBe(true);
  expect(take('ada', 1)).toBe(false);
  expect(take('eve', 12)).toBe(true);
});

test('points are restored evenly, up to the capacity', () => {
  const { clock, take, stateOf } = create(60);
  expect(take('ada', 60)).toBe(true);
  clock.ms = 999;
  expect(take('ada', 1)).toBe(false);
  clock.ms = 1_000;
  expect(take('ada', 1)).toBe(true);
  expect(take('ada', 1)).toBe(false);
  clock.ms = 1_000_000;
  expect(stateOf('ada', 1)).toEqual({ left: 60, fullInSeconds: 1, retryInSeconds: 1 });
  expect(take('ada', 60)).toBe(true);
  expect(take('ada', 1)).toBe(false);
});

test('a cost above the capacity takes a full bucket', () => {
  const { take, stateOf } = create(3);
  expect(take('ada', 10)).toBe(true);
  expect(take('ada', 1)).toBe(false);
  expect(stateOf('ada', 10).retryInSeconds).toBe(60);
});

test('keys in use are kept in memory, and others are removed', () => {
  const { take, stateOf } = create(60, 10);
  take('ada', 50);
  take('old', 50);
  for (let others = 0; others < 1_000; others++) {
    take(`other-${others}`, 1);
    expect(stateOf('ada', 1).left).toBe(10);
  }
  expect(stateOf('old', 1).left).toBe(60);
});

test('points can be returned, up to the capacity', () => {
  const { take, give, stateOf } = create(60);
  expect(take('ada', 50)).toBe(true);
  give('ada', 20);
  expect(stateOf('ada', 1).left).toBe(30);
  give('ada', 1_000);
  expect(stateOf('ada', 1).left).toBe(60);
  give('eve', 1_000);
  expect(stateOf('eve', 1).left).toBe(60);
});

test('each key can have its own capacity, and a change applies from the next call', () => {
  const clock = { ms: 0 };
  const capacities = new Map([
    ['ada', 10],
    ['eve', 60],
  ]);
  const buckets = createTokenBuckets({
    capacity: key => capacities.get(key) as number,
    refillMs: 60_000,
    entries: 100,
    nowMs: () => clock.ms,
  });
  expect([buckets.take('ada', 10), buckets.take('ada', 1), buckets.take('eve', 50)]).toEqual([true, false, true]);
  expect(buckets.stateOf('ada', 1)).toEqual({ left: 0, fullInSeconds: 60, retryInSeconds: 6 });
  capacities.set('ada', 600);
  clock.ms = 1_000;
  expect(buckets.stateOf('ada', 1)).toEqual({ left: 10, fullInSeconds: 59, retryInSeconds: 1 });
  capacities.set('eve', 5);
  expect(buckets.stateOf('eve', 1)).toEqual({ left: 5, fullInSeconds: 1, retryInSeconds: 1 });
});
