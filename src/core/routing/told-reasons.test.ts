import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { NOT_ROUTED, type NotRoutedReason } from './reasons.ts';
import { NAMED, reasonOfOthers, tellReasons, toldReason } from './told-reasons.ts';

const REASONS = Object.keys(NOT_ROUTED) as NotRoutedReason[];
const id = (i: number) => `int_${String(i).padStart(20, '0')}`;

test('a few are named, each with its reason', () => {
  const text = tellReasons(
    new Map([
      [id(1), 'not_activated'],
      [id(2), 'expired'],
    ] as const),
  );
  expect(text).toBe(`${id(1)}:a,${id(2)}:e`);
  expect(reasonOfOthers(text)).toBeUndefined();
});

test('gives back the reason of every subscription that did not get the event', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(...REASONS), { minLength: 1, maxLength: 3 * NAMED }),
      fc.constantFrom(...REASONS),
      (said, most) => {
        const many = said.length > NAMED / 2 ? [...said, ...said.map(() => most), most] : said;
        const reasons = new Map(many.map((reason, i) => [id(i), reason]));
        const text = tellReasons(reasons);
        for (const [integration, reason] of reasons) {
          expect(toldReason(text, integration) ?? reasonOfOthers(text)).toBe(reason);
        }
        expect(toldReason(text, 'int_elsewhere')).toBeUndefined();
      },
    ),
  );
});

test('the latest reason for an event counts', () => {
  const many = tellReasons(new Map(Array.from({ length: 100 }, (_, i) => [id(i), 'not_activated'] as const)));
  const text = `${many},${id(7)}:k`;
  expect([toldReason(text, id(7)), toldReason(text, id(8)), reasonOfOthers(text)]).toEqual([
    'skipped_to_now',
    undefined,
    'not_activated',
  ]);
});

test('it takes as much for ten thousand as for a hundred, whatever their reasons', () => {
  const told = (n: number, reasonOf: (i: number) => NotRoutedReason) =>
    tellReasons(new Map(Array.from({ length: n }, (_, i) => [id(i), reasonOf(i)] as const))).length;
  expect(told(10_000, () => 'not_activated')).toBe(told(100, () => 'not_activated'));
  expect(told(10_000, () => 'not_activated')).toBeLessThan(8);
  expect(told(10_000, i => REASONS[i % REASONS.length] as NotRoutedReason)).toBeLessThan(4_096);
});

test('every reason that is given is true; without room for all there is none', () => {
  const reasonOf = (i: number): NotRoutedReason => (i % 5 < 3 ? 'not_activated' : 'integration_pending');
  const text = tellReasons(new Map(Array.from({ length: 1_000 }, (_, i) => [id(i), reasonOf(i)] as const)));
  const told = Array.from({ length: 1_000 }, (_, i) => toldReason(text, id(i)) ?? reasonOfOthers(text));
  expect(told.filter((reason, i) => reason !== undefined && reason !== reasonOf(i))).toEqual([]);
  expect(told.filter(reason => reason !== undefined)).toHaveLength(128);
});
