import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { ensureBinaries } from '../support/kubernetes/binaries.ts';
import { kubectlFor } from '../support/kubernetes/kubectl.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { openHelm, outputOf, parseObjects, ROOT, renderChart } from './support/helm.ts';

const PAGE = readFileSync(join(ROOT, 'docs', 'gitops.md'), 'utf8');
const SAMPLE = join(ROOT, 'config', 'argocd', 'sample');
const WAVE = 'argocd.argoproj.io/sync-wave';

test.each(['chart.yaml', 'application.yaml'])('docs/gitops.md contains %s unchanged', file => {
  expect(PAGE).toContain(`\`\`\`yaml\n${readFileSync(join(SAMPLE, file), 'utf8')}\`\`\``);
});

test('the values for Argo CD render without a cluster', async () => {
  const { spec } = parse(readFileSync(join(SAMPLE, 'chart.yaml'), 'utf8'));
  const { releaseName, valuesObject } = spec.source.helm;
  const objects = await renderChart(await openHelm(), valuesObject, { release: releaseName });
  expect(objects.filter(({ kind }) => kind === 'Deployment').map(({ metadata }) => metadata.name)).toContain(
    'sluice-controller',
  );
});

/** Reads the table of waves in the page: kind → wave. All objects of Sluice itself are in a separate wave. */
function documentedWaves(): Record<string, string> {
  const rows = [...PAGE.matchAll(/^\| (-?\d) +\| (.*?) +\|$/gm)];
  return Object.fromEntries(
    rows.flatMap(([, wave = '', kinds = '']) => kinds.split(', ').map(kind => [kind.replace(/s$/, ''), wave])),
  );
}

test('each object of the sample is in its wave', async () => {
  const [{ kubectl: binary }, folder] = await Promise.all([ensureBinaries(['kubectl']), temporaryFolder('sample')]);
  const kubectl = kubectlFor({ binary, kubeconfig: '/nowhere', cache: folder.path });
  const objects = parseObjects(outputOf(await kubectl(['kustomize', join(SAMPLE, 'resources')])));
  const waves = documentedWaves();
  const wrong = objects.flatMap(object => {
    const { annotations = {}, labels = {}, name } = object.metadata;
    const operator = labels['app.kubernetes.io/name'] === 'sluice' && object.kind !== 'CustomResourceDefinition';
    const wanted = operator ? '-1' : (waves[object.kind] ?? '0');
    return (annotations[WAVE] ?? '0') === wanted ? [] : [`${object.kind}/${name}: ${annotations[WAVE]}, not ${wanted}`];
  });
  expect(Object.keys(waves)).toEqual(expect.arrayContaining(['CustomResourceDefinition', 'Account', 'Subscription']));
  expect(wrong, stringify(waves)).toEqual([]);
  await folder.remove();
});
