import { expect, test } from 'vitest';
import { NO_REF } from '../lanes/ref.ts';
import { parseRow, rowText, type SubscriptionRow } from './subscription-row.ts';

const ROW: SubscriptionRow = {
  route: 'open',
  send: 'held',
  unordered: true,
  cap: 64,
  maxPerSecond: 20,
  enabledMs: 1_790_000_000_000,
  since: '1a0c4fe8c00001f',
  cfgv: 'abcdefghij',
  integration: 'int_0123',
};
const PLAIN: SubscriptionRow = {
  route: 'closed',
  send: 'open',
  unordered: false,
  cap: 1,
  since: NO_REF,
  cfgv: '',
  integration: '',
};

test.each([ROW, PLAIN, { ...PLAIN, route: 'paused' as const }])('%j is read as it was written', row => {
  expect(parseRow(rowText(row))).toEqual(row);
});

test('has its fields in the places that the scripts read', () => {
  expect(rowText(ROW)).toBe('ohu00064000201790000000000' + '1a0c4fe8c00001fabcdefghij int_0123');
});

test('refuses invalid values', () => {
  expect(() => rowText({ ...ROW, cap: 100_000 })).toThrow(RangeError);
  expect(() => rowText({ ...ROW, cfgv: 'a b' })).toThrow(RangeError);
  // The fields behind it would be moved.
  expect(() => rowText({ ...ROW, enabledMs: 10_000_000_000_000 })).toThrow(RangeError);
  expect(() => rowText({ ...ROW, since: '5' })).toThrow(RangeError);
  expect(parseRow('oo')).toBeUndefined();
});
