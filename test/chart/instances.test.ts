import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { KINDS } from '../../src/api/kinds/kinds.ts';
import {
  CHART,
  type Helm,
  type Manifest,
  openHelm,
  outputOf,
  parseObjects,
  ROOT,
  renderChart,
} from './support/helm.ts';
import { REQUIRED } from './support/value-sets.ts';

/** Kubernetes kinds in the chart without a namespace. */
const OF_CLUSTER = [
  'ClusterRole',
  'ClusterRoleBinding',
  'CustomResourceDefinition',
  'FlowSchema',
  'ValidatingAdmissionPolicy',
  'ValidatingAdmissionPolicyBinding',
];

let helm: Helm;
/** The release with the CustomResourceDefinitions, and a second release. */
let releases: readonly [first: Manifest[], second: Manifest[]];

beforeAll(async () => {
  helm = await openHelm();
  const values = { ...REQUIRED, rbac: { aggregate: true } };
  const beside = { ...values, instance: 'blue', crds: { enabled: false } };
  releases = await Promise.all([
    renderChart(helm, values),
    renderChart(helm, beside, { release: 'blue', namespace: 'blue-system' }),
  ]);
});

const keyOf = ({ kind, metadata }: Manifest) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`;
const ofKind = (objects: readonly Manifest[], kind: string) => objects.filter(object => object.kind === kind);

test('two releases have no objects in common', () => {
  const [first, second] = releases.map(objects => objects.map(keyOf));
  expect(second?.length).toBeGreaterThan(20);
  expect(first?.filter(key => second?.includes(key))).toEqual([]);
});

test('names objects without a namespace after their release', () => {
  const [first, second] = releases;
  for (const object of [...first, ...second]) {
    expect(OF_CLUSTER.includes(object.kind), keyOf(object)).toBe(object.metadata.namespace === undefined);
  }
  const names = second.flatMap(({ metadata }) => (metadata.namespace === undefined ? [metadata.name] : []));
  expect(names.filter(name => !name.startsWith('blue-sluice-'))).toEqual([]);
});

test('docs/install.md: only deletes objects without a namespace of one release', async () => {
  const page = await readFile(join(ROOT, 'docs', 'install.md'), 'utf8');
  const [, flags = ''] = /^kubectl delete ((?:.*\\\n)*.*clusterroles,.*(?:\n  .*)*)/m.exec(page) ?? [];
  const words = flags.split(/[\s\\]+/);
  const kinds = words.find(word => word.startsWith('clusterroles,'))?.split(',') ?? [];
  const labels = words[words.indexOf('--selector') + 1]?.split(',').map(label => label.split('=')) ?? [];
  const plural = (kind: string) => `${kind.toLowerCase().replace(/y$/, 'ie')}s`;
  const isDeleted = ({ kind, metadata }: Manifest) =>
    kinds.includes(plural(kind)) && labels.every(([name = '', value]) => metadata.labels?.[name] === value);
  const ofCluster = ({ kind, metadata }: Manifest) =>
    metadata.namespace === undefined && kind !== 'CustomResourceDefinition';
  const [first, second] = releases;
  expect(first.filter(object => ofCluster(object) !== isDeleted(object)).map(keyOf)).toEqual([]);
  expect(second.filter(isDeleted).map(keyOf)).toEqual([]);
});

test('only the first release contains the kinds', () => {
  const crds = releases.map(objects => ofKind(objects, 'CustomResourceDefinition').length);
  expect(crds).toEqual([Object.keys(KINDS).length, 0]);
});

test('the policies of each release limit its own service accounts and roles, and only grant access to them', () => {
  for (const [objects, namespace, prefix] of [
    [releases[0], 'sluice-system', 'sluice'],
    [releases[1], 'blue-system', 'blue-sluice'],
  ] as const) {
    const policies = ofKind(objects, 'ValidatingAdmissionPolicy');
    const ofEverybody = `${prefix}-tenant-bindings`;
    expect(policies.map(({ metadata }) => metadata.name)).toContain(ofEverybody);
    for (const policy of policies) {
      if (policy.metadata.name === `${prefix}-leases`) continue;
      if (policy.metadata.name === ofEverybody) {
        const roles = [...JSON.stringify(policy).matchAll(/'([\w-]+)-tenant-\w+'/g)].map(([, found]) => found);
        expect(new Set(roles)).toEqual(new Set([prefix]));
        continue;
      }
      const users = [...JSON.stringify(policy).matchAll(/system:serviceaccount:([^:']+):/g)].map(([, found]) => found);
      expect(new Set(users)).toEqual(new Set([namespace]));
    }
    for (const binding of ofKind(objects, 'ClusterRoleBinding')) {
      const subjects = binding['subjects'] as readonly { readonly namespace?: string }[];
      for (const subject of subjects) expect(subject.namespace).toBe(namespace);
    }
  }
});

test('only the second release has a name, which all of its pods read', () => {
  const [first, second] = releases.map(
    objects =>
      objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name.endsWith('-config'))?.['data'],
  );
  expect(first).not.toHaveProperty('SLUICE_INSTANCE');
  expect(second).toMatchObject({ SLUICE_INSTANCE: 'blue' });
});

test('the uninstall Job only removes the finalizers of its own installation, even without the ConfigMap', () => {
  type Job = { readonly template: { readonly spec: { readonly containers: readonly [{ readonly env: object[] }] } } };
  const names = releases.map(objects => {
    const [job] = ofKind(objects, 'Job') as [Manifest & { readonly spec: Job }];
    const [{ env }] = job.spec.template.spec.containers;
    return env.filter(variable => 'name' in variable && variable.name === 'SLUICE_INSTANCE');
  });
  expect(names).toEqual([[], [{ name: 'SLUICE_INSTANCE', value: 'blue' }]]);
});

test.each(['123', 'no'])('helm test belongs to an installation called %s', async instance => {
  const args = ['template', 'blue', CHART, '--show-only=templates/tests/delivery.yaml'];
  const objects = parseObjects(outputOf(await helm(args, { values: { ...REQUIRED, instance } })));
  const assigned = objects.filter(({ kind }) => kind === 'Account' || kind === 'Workspace').map(({ spec }) => spec);
  expect(assigned).toMatchObject([{ instance }, { instance }]);
  const [namespace] = ofKind(objects, 'Namespace');
  expect(namespace?.metadata.labels).toMatchObject({ 'sluice.dev/instance': instance });
});

test.each(['Blue', 'b'.repeat(33), '-blue', 'blue_green'])('an invalid name is refused: %s', async instance => {
  await expect(renderChart(helm, { ...REQUIRED, instance })).rejects.toThrow(/instance.*does not match pattern/s);
});
