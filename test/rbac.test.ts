import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { KINDS } from '../src/api/kinds/kinds.ts';
import { driftedFiles, OUT_OF_DATE } from '../tools/generate/generate.ts';
import { describeRights, renderRbac } from '../tools/generate/rbac/rbac.ts';

const ROOT = join(import.meta.dirname, '..');
const FOLDER = join(ROOT, 'config', 'rbac');

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly roleRef?: { readonly kind: string; readonly name: string };
  readonly subjects?: readonly { readonly name: string; readonly namespace: string }[];
  readonly rules?: readonly { readonly resources: readonly string[]; readonly verbs: readonly string[] }[];
  readonly spec?: {
    readonly policyName?: string;
    readonly matchConditions?: readonly { readonly expression: string }[];
  };
}

const files = readdirSync(FOLDER)
  .filter(name => name.endsWith('.yaml'))
  .toSorted();
const manifests = files.flatMap(name =>
  parseAllDocuments(readFileSync(join(FOLDER, name), 'utf8')).map(document => document.toJS() as Manifest),
);
const named = (kind: string) => manifests.filter(found => found.kind === kind).map(({ metadata }) => metadata.name);

test('the manifests in config/rbac are the output of make generate, and there are no other files', () => {
  expect(driftedFiles(ROOT, renderRbac()), OUT_OF_DATE).toEqual([]);
  expect(files.map(name => `config/rbac/${name}`)).toEqual(renderRbac().map(({ path }) => path));
});

test('does not use wildcards, and grants access to every kind to a role', () => {
  const rules = manifests.flatMap(({ rules: found = [] }) => found);
  expect(JSON.stringify(rules)).not.toContain('*');
  for (const { plural } of Object.values(KINDS)) {
    expect(rules.some(({ resources }) => resources.includes(plural))).toBe(true);
    expect(rules.some(({ resources }) => resources.includes(`${plural}/status`))).toBe(true);
  }
});

test('every binding references an existing role and an existing service account', () => {
  const bindings = manifests.filter(({ roleRef }) => roleRef !== undefined);
  expect(bindings.length).toBeGreaterThan(2);
  for (const { roleRef, subjects = [] } of bindings) {
    expect(named(roleRef?.kind ?? '')).toContain(roleRef?.name);
    for (const subject of subjects) expect(named('ServiceAccount')).toContain(subject.name);
  }
});

/** Returns the conditions of the policies that apply to everybody. */
const isForTenants = (expression: string) => expression.startsWith('object.roleRef.');
const isForEverybody = (expression: string) =>
  isForTenants(expression) || expression === "object.metadata.?labels[?'sluice.dev/instance'].hasValue()";

test('every policy is bound, and limits an existing service account or the roles for tenants', () => {
  const bound = manifests.flatMap(({ spec }) => spec?.policyName ?? []);
  expect(bound).toEqual(named('ValidatingAdmissionPolicy'));
  const held = manifests.flatMap(({ spec }) => spec?.matchConditions ?? []).map(({ expression }) => expression);
  expect(held).toHaveLength(bound.length);
  const [forTenants, ...more] = held.filter(isForTenants);
  const roles = [...(forTenants?.matchAll(/'([^']+)'/g) ?? [])].map(([, name]) => name);
  const bindable = named('ClusterRole').filter(name => name.startsWith('sluice-tenant-'));
  expect([roles, more]).toEqual([['ClusterRole', ...bindable], []]);
  for (const expression of held.filter(each => !isForEverybody(each))) {
    const [, name] =
      /^request\.userInfo\.username == 'system:serviceaccount:sluice-system:(.+)'$/.exec(expression) ?? [];
    expect(named('ServiceAccount')).toContain(name);
  }
});

test('the policies limit the accounts of the bindings if the name and the namespace are changed', () => {
  const other = { namespace: 'events', prefix: 'blue', instance: 'blue', accountOf: (role: string) => `blue-${role}` };
  const objects = Object.values(describeRights(other)).flat() as Manifest[];
  const given = objects.flatMap(({ subjects = [] }) => subjects.map(({ name, namespace }) => `${namespace}:${name}`));
  const held = objects.flatMap(({ spec }) => spec?.matchConditions ?? []).map(({ expression }) => expression);
  expect(new Set(given)).toEqual(new Set(['events:blue-controller', 'events:blue-facade']));
  expect(new Set(held.filter(each => !isForEverybody(each)))).toEqual(
    new Set([...given].map(account => `request.userInfo.username == 'system:serviceaccount:${account}'`)),
  );
  expect(objects.filter(({ metadata }) => !metadata.name.startsWith('blue-'))).toEqual([]);
  const text = JSON.stringify(objects).replaceAll('"resourceNames":["sluice-controller"]', '');
  expect(text).not.toMatch(/sluice-(system|controller|facade|tenant|admin)/);
});
