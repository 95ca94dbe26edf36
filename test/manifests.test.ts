import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { ROLES } from '../src/config/config.ts';
import { ENVIRONMENT } from '../src/config/environment.ts';
import { driftedFiles, OUT_OF_DATE, renderAll } from '../tools/generate/generate.ts';
import { CONFIGURED, ELSEWHERE } from '../tools/generate/manifests/settings.ts';
import { ROLE_DEFINITIONS } from '../tools/generate/roles.ts';

const ROOT = join(import.meta.dirname, '..');
/** Files that are not generated. */
const BY_HAND = [
  'config/samples/**',
  'config/argocd/sample{,/**}',
  'charts/sluice/templates/{NOTES.txt,_helpers.tpl,_networks.tpl,root-key,secrets,validate}{,.yaml}',
  'charts/sluice/templates/tests{,/delivery.yaml}',
];
const MONITORING_BY_HAND = 'charts/sluice/templates/monitoring/{dashboard,kube-state-metrics,prometheus-rule}.yaml';

test('the manifests and the chart are the output of make generate, and there are no other files', async () => {
  const generated = await renderAll();
  expect(driftedFiles(ROOT, generated), OUT_OF_DATE).toEqual([]);
  const written = globSync(['crds/**/*', 'config/**/*', 'charts/**/*'], {
    cwd: ROOT,
    exclude: [...BY_HAND, MONITORING_BY_HAND, '**/samples'],
  });
  const known = new Set(generated.flatMap(({ path }) => [path, ...foldersOf(path)]));
  expect(written.filter(path => !known.has(path))).toEqual([]);
});

function foldersOf(path: string): string[] {
  const parts = path.split('/').slice(0, -1);
  return parts.map((_, i) => parts.slice(0, i + 1).join('/'));
}

test('kubectl apply -k config/samples applies the same files as -f', () => {
  const folder = join(ROOT, 'config', 'samples');
  const { resources } = parse(readFileSync(join(folder, 'Kustomization'), 'utf8')) as { resources: string[] };
  expect(resources).toEqual(globSync('*.yaml', { cwd: folder }).toSorted());
});

test('each variable is set by the ConfigMap, a Secret, or a field of the pod', () => {
  const known = [...CONFIGURED, ...ELSEWHERE].toSorted();
  expect(known, 'tools/generate/manifests/settings.ts must list all variables').toEqual(
    Object.keys(ENVIRONMENT).toSorted(),
  );
});

test('each value that a template of the chart reads exists, so that users can set it', () => {
  const chart = join(ROOT, 'charts', 'sluice');
  const values: unknown = parse(readFileSync(join(chart, 'values.yaml'), 'utf8'));
  const templates = globSync('templates/**/*.{yaml,tpl,txt}', { cwd: chart });
  const read = templates.flatMap(path => [
    ...readFileSync(join(chart, path), 'utf8').matchAll(/\.Values\.(\w+(?:\.\w+)*)/g),
  ]);
  const paths = [...new Set(read.map(([, path = '']) => path))];
  expect(paths.length).toBeGreaterThan(50);
  expect(
    paths.filter(path => !hasPath(values, path)),
    'tools/generate/chart/values/values.ts must have these values',
  ).toEqual([]);
});

function hasPath(values: unknown, path: string): boolean {
  let at = values;
  for (const name of path.split('.')) {
    if (typeof at !== 'object' || at === null || !(name in at)) return false;
    at = (at as Record<string, unknown>)[name];
  }
  return true;
}

test('each role has manifests', () => {
  expect(ROLE_DEFINITIONS.map(({ name }) => name)).toEqual(ROLES);
});

test('waiting or slow processes are not restarted: they have 5 minutes to start, and one minute to respond', () => {
  const workloads = globSync('config/default/*.yaml', { cwd: ROOT }).flatMap(path =>
    parseAllDocuments(readFileSync(join(ROOT, path), 'utf8')).flatMap(document => {
      const { kind, spec } = document.toJS() as {
        kind: string;
        spec: { template: { spec: { containers: Probed[] } } };
      };
      return kind === 'Deployment' ? spec.template.spec.containers : [];
    }),
  );
  expect(workloads).toHaveLength(ROLES.length);
  for (const { startupProbe, livenessProbe } of workloads) {
    // This path does not depend on Redis or the API server.
    for (const { httpGet } of [startupProbe, livenessProbe]) expect(httpGet.path).toBe('/healthz');
    expect(startupProbe.periodSeconds * startupProbe.failureThreshold).toBeGreaterThanOrEqual(300);
    expect(livenessProbe.periodSeconds * livenessProbe.failureThreshold).toBeGreaterThanOrEqual(60);
    for (const { timeoutSeconds } of [startupProbe, livenessProbe]) expect(timeoutSeconds).toBe(15);
  }
});

interface Probe {
  readonly httpGet: { readonly path: string };
  readonly periodSeconds: number;
  readonly timeoutSeconds: number;
  readonly failureThreshold: number;
}

interface Probed {
  readonly startupProbe: Probe;
  readonly livenessProbe: Probe;
}
