import { expect, test } from 'vitest';
import { msOfRef, NO_REF, refOfMs } from './ref.ts';

test.each([0, 1, 1_800_000_000_000])('%d ms is read as it was written', ms => {
  expect(msOfRef(refOfMs(ms))).toBe(ms);
});

test.each(['9999-12-31T23:59:59Z', '1969-12-31T23:59:59Z', '0000-01-01T00:00:00Z', 'never'])(
  'the ref of %s has the same length as all others',
  time => {
    expect(refOfMs(Date.parse(time))).toMatch(/^[0-9a-f]{15}$/);
  },
);

test('the nearest ref is used for times without one', () => {
  expect(refOfMs(-1)).toBe(NO_REF);
  expect(refOfMs(Number.NaN)).toBe(NO_REF);
  expect(refOfMs(Date.parse('9999-12-31T23:59:59Z'))).toBe('fffffffffff0000');
});
