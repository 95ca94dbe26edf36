import { beforeAll, expect, test } from 'vitest';
import type { KindName } from '../../src/api/kinds/kinds.ts';
import type { Health } from '../../tools/generate/argocd/scenario.ts';
import { deletingOf, staleOf, testCases } from '../../tools/generate/argocd/test-data.ts';
import { ensureBinaries } from '../support/kubernetes/binaries.ts';
import { judge, KIND_NAMES } from './support.ts';

/**
 * The corresponding status in kstatus, which has no status for paused objects. A change that waits for the end of a
 * pause is not in force, so `helm upgrade --wait` must not succeed.
 */
const KSTATUS: Record<Health, string> = {
  Healthy: 'Current',
  Progressing: 'InProgress',
  Suspended: 'InProgress',
  Degraded: 'Failed',
};

/**
 * Exceptions. kstatus only evaluates whether the last change is in force, which is true for these objects. `helm
 * upgrade --wait` must not fail because of an endpoint that does not respond.
 */
const IN_FORCE: Partial<Record<KindName, readonly string[]>> = {
  Subscription: [
    'endpoint-refused',
    'waiting-for-consent',
    'waiting-for-secret',
    'header-not-readable',
    'signing-key-missing',
    'spec-refused',
    'endpoint-disabled',
  ],
  Workspace: ['redis-away', 'paused-while-ready'],
};

let kstatus: string;

beforeAll(async () => {
  ({ kstatus } = await ensureBinaries(['kstatus']));
});

test.each(KIND_NAMES)('kstatus and Argo CD evaluate a %s in the same way', async kind => {
  // Every object has a status because the API server adds a default (see the CRD).
  const cases = testCases(kind).filter(({ name }) => name !== 'without-status' && name !== 'deleting');
  const inForce = IN_FORCE[kind] ?? [];
  const verdicts = await statusesOf(cases);
  const expected = cases.map(({ name, health }) => (inForce.includes(name) ? 'Current' : KSTATUS[health.status]));
  expect(named(cases, verdicts)).toEqual(named(cases, expected));
  // If an exception does not apply, it is incorrect.
  for (const { name, health } of cases) {
    if (inForce.includes(name)) expect(KSTATUS[health.status], name).not.toBe('Current');
  }
  expect(cases.map(({ name }) => name)).toEqual(expect.arrayContaining([...inForce]));

  const stale = cases.map(staleOf);
  expect(await statusesOf(stale)).toEqual(stale.map(() => 'InProgress'));
  expect(await statusesOf(stale.map(deletingOf))).toEqual(stale.map(() => 'Terminating'));
  expect(await statusesOf(cases.map(deletingOf))).toEqual(cases.map(() => 'Terminating'));
});

async function statusesOf(cases: readonly { readonly object: object }[]): Promise<string[]> {
  const verdicts = await judge<{ status: string }>(
    kstatus,
    [],
    cases.map(({ object }) => object),
  );
  return verdicts.map(({ status }) => status);
}

/** Returns the results by case name so that a difference includes the name of its case. */
function named(cases: readonly { readonly name: string }[], verdicts: readonly string[]) {
  expect(verdicts).toHaveLength(cases.length);
  return Object.fromEntries(cases.map(({ name }, i) => [name, verdicts[i]]));
}
