import { expect, test } from 'vitest';
import { slotTag } from '../redis/keys.ts';
import { partKeys, slotOf, unpackSlots } from './keys.ts';

const PART = { tenant: 'ten_a', queue: 'orders', gen: 'g1', number: 3 };

test('all keys of a part are in its slot and different', () => {
  const { ids, records, chunks, ...named } = partKeys(PART);
  const all = [...Object.values(named), ids(1), ids(2), records(1), records(2), chunks('s', 'r')];
  expect(new Set(all.map(slotTag))).toEqual(new Set(['{q:ten_a:orders:3}']));
  expect(new Set(all).size).toBe(all.length);
});

test('generations only share the keys for fencing and generations', () => {
  const { ids, records, chunks, ...named } = partKeys(PART);
  const other = partKeys({ ...PART, gen: 'g2' });
  const same = Object.entries(named).filter(([name, key]) => other[name as 'meta'] === key);
  expect(same.map(([name]) => name)).toEqual(['meta']);
  expect([ids(1), records(1)]).not.toEqual([other.ids(1), other.records(1)]);
  expect(chunks('s', 'r')).not.toBe(other.chunks('s', 'r'));
});

test('a slot has 8 characters, which only depend on the subscription and its generation', () => {
  expect(slotOf('sub_a', 'i1')).toMatch(/^[0-9a-v]{8}$/);
  expect(slotOf('sub_a', 'i1')).toBe(slotOf('sub_a', 'i1'));
  expect(new Set([slotOf('sub_a', 'i1'), slotOf('sub_a', 'i2'), slotOf('sub_b', 'i1')]).size).toBe(3);
});

test('a packed list of slots can be unpacked, including leading zeros', () => {
  expect(unpackSlots(Buffer.from([0, 0, 0, 0, 1, 255, 255, 255, 255, 255]))).toEqual(['00000001', 'vvvvvvvv']);
  expect(unpackSlots(Buffer.alloc(0))).toEqual([]);
});
