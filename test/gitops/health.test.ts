import { readFileSync } from 'node:fs';
import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { deletingOf, staleOf, type TestCase, testCases } from '../../tools/generate/argocd/test-data.ts';
import { ensureBinaries, moduleFolder } from '../support/kubernetes/binaries.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { ARGOCD, judge, KIND_NAMES, runProgram } from './support.ts';

/** Argo CD does not run the script for objects that are being deleted. */
const PENDING_DELETION = { status: 'Progressing', message: 'Pending deletion' };

let argocd: string;
let argocdHealth: string;
/** A file with the ConfigMap of Argo CD and the component of config/argocd. */
let configMap: string;
let kubectl: string;
/** The original ConfigMap of Argo CD. */
let original: string;

beforeAll(async () => {
  const binaries = await ensureBinaries(['argocd', 'argocd-health', 'kubectl']);
  ({ argocd, 'argocd-health': argocdHealth, kubectl } = binaries);
  const folder = (await temporaryFolder('argocd')).path;
  // The original files of Argo CD, with the component of this project.
  const overlay = join(folder, 'overlay');
  await mkdir(overlay);
  original = join(await moduleFolder('argocd'), 'manifests', 'base', 'config', 'argocd-cm.yaml');
  await copyFile(original, join(overlay, 'argocd-cm.yaml'));
  const kustomization = {
    namespace: 'argocd',
    resources: ['argocd-cm.yaml'],
    components: [relative(overlay, ARGOCD)],
  };
  await writeFile(join(overlay, 'kustomization.yaml'), stringify(kustomization));
  configMap = join(folder, 'argocd-cm.yaml');
  await writeFile(configMap, await runProgram(kubectl, ['kustomize', overlay]));
});

test('kubectl patch adds the same checks as kustomize', async () => {
  const patch = ['--type=merge', '--patch-file', join(ARGOCD, 'argocd-cm.yaml')];
  const patched = await runProgram(kubectl, ['patch', '--local', '-f', original, ...patch, '-o', 'yaml']);
  const data = (text: string) => (parse(text) as { data: Record<string, string> }).data;
  expect(data(patched)).toEqual(data(readFileSync(configMap, 'utf8')));
  const keys = KIND_NAMES.map(kind => `resource.customizations.health.sluice.dev_${kind}`);
  expect(Object.keys(data(patched))).toEqual(expect.arrayContaining(keys));
});

function verdictsOf(cases: readonly TestCase[]): Promise<{ status: string; message: string }[]> {
  return judge(
    argocdHealth,
    [configMap],
    cases.map(({ object }) => object),
  );
}

const isBeingDeleted = ({ object }: TestCase) => 'deletionTimestamp' in (object.metadata as object);

describe.each(KIND_NAMES)('Argo CD evaluates the health of a %s', kind => {
  const cases = testCases(kind);

  test('from its conditions', async () => {
    const verdicts = await verdictsOf(cases);
    const expected = cases.map(one => (isBeingDeleted(one) ? PENDING_DELETION : one.health));
    expect(named(cases, verdicts)).toEqual(named(cases, expected));
  });

  test('as Progressing until the controller has reconciled its last change', async () => {
    const stale = cases.filter(one => !isBeingDeleted(one)).map(staleOf);
    expect(named(stale, await verdictsOf(stale))).toEqual(
      named(
        stale,
        stale.map(({ health }) => health),
      ),
    );
  });

  test('as Progressing while it is being deleted', async () => {
    const deleting = [...cases, ...cases.map(staleOf)].map(deletingOf);
    const verdicts = await verdictsOf(deleting);
    expect(named(deleting, verdicts)).toEqual(
      named(
        deleting,
        deleting.map(() => PENDING_DELETION),
      ),
    );
  });

  test('with the same result in its command for administrators', async () => {
    const [first] = cases;
    const file = join((await temporaryFolder('object')).path, 'object.yaml');
    await writeFile(file, stringify(first?.object));
    const command = ['admin', 'settings', 'resource-overrides', 'health', file, '--argocd-cm-path', configMap];
    expect(await runProgram(argocd, command)).toContain(
      `STATUS: ${first?.health.status}\nMESSAGE: ${first?.health.message}\n`,
    );
  });
});

/** Returns the results by case name so that a difference includes the name of its case. */
function named(cases: readonly TestCase[], verdicts: readonly object[]) {
  expect(verdicts).toHaveLength(cases.length);
  return Object.fromEntries(cases.map(({ name }, i) => [name, verdicts[i]]));
}
