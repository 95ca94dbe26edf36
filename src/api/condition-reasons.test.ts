import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { CONDITION, CONDITION_MEANING, REASON } from './condition-reasons.ts';
import { Condition } from './conditions.ts';
import { KINDS } from './kinds/kinds.ts';

it('has a table for every kind, with Ready, Reconciling and Stalled', () => {
  expect(Object.keys(CONDITION_MEANING).toSorted()).toEqual(Object.keys(KINDS).toSorted());
  for (const conditions of Object.values(CONDITION)) {
    expect(conditions).toMatchObject({ Ready: 'Ready', Reconciling: 'Reconciling', Stalled: 'Stalled' });
    // The schema allows twelve.
    expect(Object.keys(conditions).length).toBeLessThanOrEqual(12);
  }
});

it('derives names from the table of meanings', () => {
  expect(CONDITION.Subscription.BacklogAtRisk).toBe('BacklogAtRisk');
  expect(REASON.Subscription.Live.Blocked).toBe('Blocked');
  expect(REASON.Workspace.Ready.RedisUnavailable).toBe('RedisUnavailable');
});

const reasons = Object.entries(CONDITION_MEANING).flatMap(([kind, conditions]) =>
  Object.entries(conditions).flatMap(([type, meanings]) =>
    Object.entries(meanings).map(([reason, meaning]) => ({ kind, type, reason, meaning })),
  ),
);

it.each(reasons)('$kind $type $reason is valid in a condition and has a meaning', ({ type, reason, meaning }) => {
  const condition = { type, reason, status: 'True', message: '', observedGeneration: 1 };
  expect(Condition.safeParse({ ...condition, lastTransitionTime: '2026-01-01T00:00:00Z' }).success).toBe(true);
  expect(meaning).toMatch(/.\.$/);
});

it('only contains reasons that are used by the code', () => {
  const src = join(import.meta.dirname, '..');
  const code = globSync('{controller,core}/**/*.ts', { cwd: src })
    .filter(file => !file.endsWith('.test.ts'))
    .map(file => readFileSync(join(src, file), 'utf8'))
    .join('\n');
  const words = new Set(code.match(/\w+/g));
  expect(reasons.filter(({ reason }) => !words.has(reason))).toEqual([]);
});
