import { GROUP } from '../../../src/api/group-version.ts';
import { KINDS, type KindName } from '../../../src/api/kinds/kinds.ts';
import type { GeneratedFile } from '../generate.ts';
import { stringifyOne } from '../manifests/yaml.ts';
import { healthScript } from './health-script.ts';
import { testCases } from './test-data.ts';

const FOLDER = 'config/argocd';
const ORIGIN = '# Generated from tools/generate/argocd by tools/generate/generate.ts. Change it there.\n';
/** A line width for YAML that preserves the lines of a script. */
const WITHOUT_FOLDING = 0;
const NAMES = Object.keys(KINDS) as KindName[];

/**
 * Renders the health checks for Argo CD, both as a patch for the `argocd-cm` ConfigMap, and in the layout of the
 * `resource_customizations` folder in its repository, including test data.
 */
export function renderArgocd(): GeneratedFile[] {
  return [
    { path: `${FOLDER}/argocd-cm.yaml`, text: ORIGIN + stringifyOne(configMap(), WITHOUT_FOLDING) },
    file('kustomization.yaml', {
      apiVersion: 'kustomize.config.k8s.io/v1alpha1',
      kind: 'Component',
      // The target may already have a namespace, which would have to be specified in a patch without a target.
      patches: [{ path: 'argocd-cm.yaml', target: { version: 'v1', kind: 'ConfigMap', name: 'argocd-cm' } }],
    }),
    ...NAMES.flatMap(customization),
  ];
}

function configMap() {
  const checks = NAMES.map(kind => [`resource.customizations.health.${GROUP}_${kind}`, healthScript(kind)]);
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'argocd-cm' },
    data: Object.fromEntries(checks) as Record<string, string>,
  };
}

function file(path: string, object: object): GeneratedFile {
  return { path: `${FOLDER}/${path}`, text: ORIGIN + stringifyOne(object) };
}

function customization(kind: KindName): GeneratedFile[] {
  const at = `resource_customizations/${GROUP}/${kind}`;
  const cases = testCases(kind);
  const tests = cases.map(({ name, health }) => ({ healthStatus: health, inputPath: `testdata/${name}.yaml` }));
  return [
    { path: `${FOLDER}/${at}/health.lua`, text: healthScript(kind) },
    file(`${at}/health_test.yaml`, { tests }),
    ...cases.map(({ name, object }) => file(`${at}/testdata/${name}.yaml`, object)),
  ];
}
