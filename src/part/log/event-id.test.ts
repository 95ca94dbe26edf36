import { expect, test } from 'vitest';
import { eventIdOf, parseEventId } from './event-id.ts';

const PART = { tenant: 'ten_a', queue: 'orders', gen: 'g1', number: 5 };
const REF = '1a0c4fe8c00001f';

test('an id has 26 characters after its prefix, and contains the position of its event', () => {
  const id = eventIdOf(PART, REF);
  expect(id).toMatch(/^evt_[0-9a-hjkmnp-tv-z]{26}$/);
  expect(parseEventId(id, PART)).toEqual({ ref: REF, part: 5 });
});

test('events of two streams, or of two generations, have different ids', () => {
  const id = eventIdOf(PART, REF);
  for (const other of [
    { ...PART, tenant: 'ten_b' },
    { ...PART, queue: 'x' },
    { ...PART, gen: 'g2' },
  ]) {
    expect(eventIdOf(other, REF)).not.toBe(id);
    expect(parseEventId(id, other)).toBeUndefined();
  }
});

test('ids of a part sort like their refs', () => {
  const refs = ['0000000000000ff', '000000000000100', '1a0c4fe8c00001f', '1a0c4fe8c000020', '1a0c4fe8c010000'];
  const ids = refs.map(ref => eventIdOf(PART, ref));
  expect(ids.toSorted()).toEqual(ids);
});

test.each(['', 'evt_', 'evt_01h', `evt_${'i'.repeat(26)}`, `sub_${'0'.repeat(26)}`])('%j is not a valid id', id => {
  expect(parseEventId(id, PART)).toBeUndefined();
});
