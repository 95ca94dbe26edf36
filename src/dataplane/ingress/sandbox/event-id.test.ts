import { expect, test } from 'vitest';
import { createEventIds, createRandom40 } from './event-id.ts';

const TOP = 2 ** 40 - 1;

test('an id is evt_ followed by a ULID: 10 characters of time and 16 random characters', () => {
  const next = createEventIds(
    () => 1_469_918_176_385,
    () => 0,
  );
  // The time in the example of the ULID specification, 01ARYZ6S41.
  expect(next()).toBe('evt_01aryz6s410000000000000000');
});

test('ids increase within a millisecond, and after the clock was set back', () => {
  const times = [5, 5, 5, 4, 3, 6, 6];
  const next = createEventIds(
    () => times.shift() ?? 7,
    () => 123_456_789,
  );
  const ids = Array.from({ length: 10 }, next);
  expect(ids).toEqual(ids.toSorted());
  expect(new Set(ids).size).toBe(10);
});

test('the random part has a carry, which finally changes the time', () => {
  const random = [0, TOP];
  const next = createEventIds(
    () => 1,
    () => random.shift() ?? 0,
  );
  expect(next()).toBe('evt_000000000100000000zzzzzzzz');
  expect(next()).toBe('evt_00000000010000000100000000');
  const full = createEventIds(
    () => 1,
    () => TOP,
  );
  full();
  expect(full()).toBe('evt_00000000020000000000000000');
});

test('random numbers are unique, and all 40 bits of each are random', () => {
  let filled = 0;
  const random = createRandom40(bytes => {
    for (let i = 0; i < bytes.length; i += 5) bytes.writeUIntBE(TOP - filled++, i, 5);
  });
  const numbers = Array.from({ length: 2_000 }, random);
  expect(numbers).toEqual(Array.from({ length: 2_000 }, (_, i) => TOP - i));
});
