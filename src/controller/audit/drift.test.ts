import { describe, expect, test } from 'vitest';
import { type Difference, differencesOfPlan, inBoth } from './drift.ts';

const planOf = (
  ...ops: [command: 'HSET' | 'HSETNX' | 'HDEL' | 'DEL', key: string, ...args: (string | number)[]][]
) => ({
  patches: [{ meta: 'm', ops: ops.map(([command, key, ...args]) => ({ command, key, args })) }],
  ready: [],
});

describe('the differences of a plan', () => {
  test('consist of one difference for each key, identified by the required write', () => {
    const found = differencesOfPlan(
      planOf(
        ['HSET', '{q:t:o}:meta', 'state', 'open', 'gen', 'g'],
        ['HDEL', '{q:t:o}:meta', 'x'],
        ['HSET', '{t:t}:keys', 'k', ''],
      ),
    );
    expect(found).toEqual([
      { id: '{q:t:o}:meta state=open gen=g -x', what: 'queue', removes: false },
      { id: '{t:t}:keys k=', what: 'keys', removes: false },
    ]);
  });

  test('are the same a moment later', () => {
    const at = (ms: number) =>
      differencesOfPlan(
        planOf(['HSETNX', '{i:i}:s:s', 'since', ms], ['HSET', '{i:i}:meta', 'state', 'active', 'since', ms]),
      );
    expect(at(1)).toEqual(at(2));
    expect(at(1).map(({ what }) => what)).toEqual(['integration']);
  });

  test.each([
    ['{i:int_a}:meta', 'integration'],
    ['{i:int_a}:s:sub_a', 'subscription'],
    ['{q:ten_a:meta}:meta', 'queue'],
    ['{t:ten_a}:meta', 'tenant'],
    ['{t:ten_a}:keys', 'keys'],
    ['{t:ten_a}:index', 'index'],
    ['{t:ten_a}:subs:keys', 'subscribers'],
  ])('%s is reported as %s', (key, what) => {
    expect(differencesOfPlan(planOf(['HSET', key, 'a', 'b']))[0]?.what).toBe(what);
  });

  test('include missing markers', () => {
    const ready = [
      { meta: '{t:t}:meta', ops: [{ command: 'HSET' as const, key: '{t:t}:meta', args: ['ready', '1'] }] },
    ];
    expect(differencesOfPlan({ patches: [], ready })).toEqual([
      { id: 'ready {t:t}:meta', what: 'ready', removes: false },
    ]);
  });
});

test('only include differences that were found by both comparisons', () => {
  const of = (...ids: string[]): Difference[] => ids.map(id => ({ id, what: 'activation', removes: false }));
  expect(inBoth(of('a', 'b'), of('b', 'c'))).toEqual(of('b'));
  expect(inBoth(of(), of('b'))).toEqual([]);
});
