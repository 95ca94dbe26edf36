import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { refOfStreamId } from '../ids/refs.ts';
import { costsOf, planBatch, refuse, whyOf } from './batch.ts';
import { NOT_ROUTED, notRoutedReason } from './reasons.ts';

const entry = (seq: number, groupKey: string, bytes = 1) => ({ id: `1800000000000-${seq}`, groupKey, bytes });
const ref = (seq: number) => refOfStreamId(`1800000000000-${seq}`);

test('an integration is offered what it subscribes to and has activated, oldest first', () => {
  const gates = new Map([
    ['a', new Set(['int_x', 'int_elsewhere'])],
    ['b', new Set(['int_x', 'int_y'])],
  ]);
  const plan = planBatch(
    [entry(1, 'b', 16_385), entry(2, 'a'), entry(3, 'c'), entry(4, '')],
    ['int_x', 'int_y'],
    gates,
  );
  expect([...plan.offers]).toEqual([
    [
      'int_x',
      [
        { ref: ref(1), id: '1800000000000-1', groupKey: 'b', tokens: 2 },
        { ref: ref(2), id: '1800000000000-2', groupKey: 'a', tokens: 1 },
      ],
    ],
    ['int_y', [{ ref: ref(1), id: '1800000000000-1', groupKey: 'b', tokens: 2 }]],
  ]);
  expect(plan.keyless).toBe(1);
  const entries = [entry(1, 'b', 16_385), entry(2, 'a'), entry(3, 'c'), entry(4, '')];
  expect(costsOf(entries, plan.offers)).toEqual([4, 1, 0, 0]);
  expect(whyOf(plan.refused)).toEqual([
    { ref: ref(2), ms: 1_800_000_000_000, text: 'int_y:a' },
    { ref: ref(3), ms: 1_800_000_000_000, text: 'int_x:a,int_y:a' },
  ]);
});

test('every subscribed integration either is offered an event with a key, or has a reason', () => {
  const key = fc.constantFrom('a', 'b', 'ab', 'constructor', '__proto__', '');
  const integration = fc.constantFrom('int_1', 'int_2', 'int_3');
  fc.assert(
    fc.property(
      fc.array(key, { maxLength: 20 }),
      fc.uniqueArray(integration),
      fc.array(fc.tuple(key, fc.uniqueArray(integration))),
      (keys, subscribed, gates) => {
        const entries = keys.map((groupKey, i) => entry(i, groupKey));
        const plan = planBatch(entries, subscribed, new Map(gates.map(([gk, ints]) => [gk, new Set(ints)])));
        for (const [i, groupKey] of keys.entries()) {
          for (const int of subscribed) {
            const offered = plan.offers.get(int)?.filter(item => item.ref === ref(i)).length ?? 0;
            const refused = plan.refused.get(ref(i))?.has(int) ? 1 : 0;
            expect(offered + refused).toBe(groupKey === '' ? 0 : 1);
          }
        }
        expect(plan.keyless).toBe(keys.filter(groupKey => groupKey === '').length);
      },
    ),
  );
});

test('a later reason replaces the earlier one of the same integration', () => {
  const { refused } = planBatch([entry(1, 'a')], ['int_x'], new Map());
  refuse(refused, ref(1), 'int_x', 'integration_closed');
  expect(whyOf(refused)).toEqual([{ ref: ref(1), ms: 1_800_000_000_000, text: 'int_x:c' }]);
});

test('every reason has a letter of its own, and is found by it', () => {
  const letters = Object.values(NOT_ROUTED);
  expect(new Set(letters).size).toBe(letters.length);
  for (const [word, letter] of Object.entries(NOT_ROUTED)) expect(notRoutedReason(letter)).toBe(word);
  expect(notRoutedReason('?')).toBeUndefined();
});
