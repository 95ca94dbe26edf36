import { describe, expect, test } from 'vitest';
import { CONDITION_MEANING } from '../src/api/condition-reasons.ts';
import { KINDS, type KindName } from '../src/api/kinds/kinds.ts';
import { healthScript } from '../tools/generate/argocd/health-script.ts';
import type { Scenario } from '../tools/generate/argocd/scenario.ts';
import { SCENARIOS } from '../tools/generate/argocd/scenarios.ts';
import { testCases } from '../tools/generate/argocd/test-data.ts';

const KIND_NAMES = Object.keys(KINDS) as KindName[];

describe.each(KIND_NAMES)('the health check of a %s', kind => {
  test('has test data for every reason', () => {
    const reasons = Object.entries(CONDITION_MEANING[kind]).flatMap(([type, meanings]) =>
      Object.keys(meanings).map(reason => `${type} ${reason}`),
    );
    const scenarios = SCENARIOS[kind] as readonly Scenario[];
    const reported = scenarios.flatMap(({ conditions }) =>
      Object.entries<string>(conditions).map(([type, value]) => `${type} ${value.split(' ')[1]}`),
    );
    const missing = reasons.filter(reason => !reported.includes(reason));
    expect(missing, 'tools/generate/argocd/scenarios.ts must have a scenario for each reason').toEqual([]);
  });

  test('only uses statuses that the description of the reason contains', () => {
    const meanings: Readonly<Record<string, Readonly<Record<string, string>>>> = CONDITION_MEANING[kind];
    for (const { name, conditions } of SCENARIOS[kind] as readonly Scenario[]) {
      for (const [type, value] of Object.entries<string>(conditions)) {
        const [status = '', reason = ''] = value.split(' ');
        const [, named = status] =
          /^((?:True|False|Unknown)(?:, (?:True|False|Unknown))*): /.exec(meanings[type]?.[reason] ?? '') ?? [];
        expect(named.split(', '), `${name}: ${type}`).toContain(status);
      }
    }
  });

  test('uses different test data for each kind, and only quotes text that it contains', () => {
    const names = testCases(kind).map(({ name }) => name);
    expect(names).toEqual([...new Set(names)]);
    for (const { name, by = [], conditions } of SCENARIOS[kind] as readonly Scenario[]) {
      expect(Object.keys(conditions), name).toEqual(expect.arrayContaining([...by]));
    }
  });

  test('has test data that the API server would store', () => {
    for (const { name, object } of testCases(kind)) {
      expect(KINDS[kind].spec.safeParse(object.spec).error?.message, name).toBeUndefined();
      expect(KINDS[kind].status.safeParse(object.status ?? {}).error?.message, name).toBeUndefined();
    }
  });

  test('only differs from the others in its remarks', () => {
    const common = (name: KindName) => healthScript(name).replace(/^local remarks = \{\n(?: {2}\[.*\n)*\}$/m, '');
    expect(common(kind)).toBe(common('Account'));
    expect(common(kind)).not.toContain('remarks = {');
  });
});
