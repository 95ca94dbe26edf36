import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { isAfter, isRef, refMs, refOfStreamId, streamIdOfRef } from './refs.ts';

/** The full range of a ref: up to 50 bits of milliseconds and a 25-bit sequence. */
const id = fc
  .tuple(fc.bigInt(0n, 2n ** 50n - 1n), fc.integer({ min: 0, max: 2 ** 25 - 1 }))
  .map(([ms, seq]) => ({ ms, seq, id: `${ms}-${seq}` }));

test('a ref has 15 characters, and can be converted back to the stream id', () => {
  fc.assert(
    fc.property(id, each => {
      const ref = refOfStreamId(each.id);
      expect(ref).toMatch(/^[0-9a-z]{15}$/);
      expect(isRef(ref)).toBe(true);
      expect(streamIdOfRef(ref)).toBe(each.id);
      expect(refMs(ref)).toBe(Number(each.ms));
    }),
  );
});

test('refs sort as strings in the same order as their stream ids as numbers', () => {
  fc.assert(
    fc.property(id, id, (a, b) => {
      const after = a.ms > b.ms || (a.ms === b.ms && a.seq > b.seq);
      expect(refOfStreamId(a.id) > refOfStreamId(b.id)).toBe(after);
      expect(isAfter(a.id, b.id)).toBe(after);
    }),
  );
});

test('known values: the alphabet of Crockford does not contain i, l, o, and u', () => {
  expect(refOfStreamId('0-0')).toBe('000000000000000');
  expect(refOfStreamId('31-32')).toBe('000000000z00010');
  expect(refOfStreamId('1800000000000-10') > refOfStreamId('1800000000000-9')).toBe(true);
  expect(refOfStreamId(`${2n ** 50n - 1n}-${2 ** 25 - 1}`)).toBe('z'.repeat(15));
});

test.each(['', '00000000000000', '0000000000000000', '00000000000000i', '00000000000000L', '00000000000000U'])(
  '%j is not a ref',
  text => expect(isRef(text)).toBe(false),
);
