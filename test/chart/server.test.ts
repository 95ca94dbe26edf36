import { beforeAll, describe, expect, inject, test } from 'vitest';
import { ensureBinaries } from '../support/kubernetes/binaries.ts';
import { ESTABLISHED, untilEstablished } from '../support/kubernetes/crds.ts';
import { type Kubectl, kubectlFor } from '../support/kubernetes/kubectl.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { foreignApis } from './support/foreign-apis.ts';
import { type Helm, type Manifest, openHelm, outputOf, renderChart } from './support/helm.ts';
import { buildOverlays, REQUIRED_OVERLAY } from './support/kustomize.ts';
import { VALUE_SETS } from './support/value-sets.ts';

const NAMESPACE = 'chart-dry-run';
const APIS = ['monitoring.coreos.com/v1', 'gateway.networking.k8s.io/v1', 'cert-manager.io/v1'];

let helm: Helm;
let kubectl: Kubectl;

const asList = (items: readonly object[]) => JSON.stringify({ apiVersion: 'v1', kind: 'List', items });

beforeAll(async () => {
  helm = await openHelm();
  const [{ kubectl: binary }, folder] = await Promise.all([ensureBinaries(['kubectl']), temporaryFolder('chart')]);
  kubectl = kubectlFor({ binary, kubeconfig: inject('kubeconfig'), cache: folder.path });
  const restricted = { 'pod-security.kubernetes.io/enforce': 'restricted' };
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE, labels: restricted } };
  const definitions = await foreignApis();
  const applying = ['apply', '--server-side', '--force-conflicts', '-f', '-'];
  outputOf(await kubectl(applying, { stdin: asList([namespace, ...definitions]) }));
  const names = definitions.map(({ metadata }) => `crd/${metadata.name}`);
  await untilEstablished(async () => outputOf(await kubectl([...ESTABLISHED, ...names])));
});

interface WithPods extends Manifest {
  readonly spec: { readonly template?: { readonly metadata: object; readonly spec: object } };
}

/** Returns the pods that would be created by the Kubernetes controllers. */
function podsOf(objects: readonly Manifest[]): object[] {
  return (objects as readonly WithPods[])
    .filter(({ kind }) => ['Deployment', 'StatefulSet', 'Job'].includes(kind))
    .map(({ metadata, spec }) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...spec.template?.metadata, name: metadata.name, namespace: NAMESPACE },
      // The volume of a claim template is added by the controller.
      spec: { volumes: [], ...spec.template?.spec },
    }));
}

/** Objects that the API server has accepted. Most objects, such as the definitions, are in every rendering. */
const accepted = new Set<Manifest>();

/** Lets the API server validate objects, and their pods against the standard `restricted`. */
async function validate(all: readonly Manifest[]): Promise<void> {
  expect(podsOf(all).length).toBeGreaterThan(0);
  const objects = all.filter(object => !accepted.has(object));
  if (objects.length === 0) return;
  const trying = ['--server-side', '--force-conflicts', '--dry-run=server', '--validate=strict', '-f', '-'];
  const { code, stderr } = await kubectl(['apply', ...trying], { stdin: asList(objects) });
  expect(stderr).toBe('');
  expect(code).toBe(0);
  const pods = podsOf(objects);
  if (pods.length > 0) await expectPods(pods);
  for (const object of objects) accepted.add(object);
}

async function expectPods(pods: readonly object[]): Promise<void> {
  // Reports each pod that is refused.
  const created = await kubectl(['create', '--dry-run=server', '-f', '-'], { stdin: asList(pods.map(withClaims)) });
  expect(created.stderr).toBe('');
  expect(created.stdout.trim().split('\n').length).toBe(pods.length);
}

interface Pod {
  readonly spec: {
    readonly volumes: readonly { readonly name: string }[];
    readonly containers: readonly { readonly volumeMounts?: readonly { readonly name: string }[] }[];
  };
}

function withClaims(pod: object): object {
  const { spec } = pod as Pod;
  const mounted = spec.containers.flatMap(({ volumeMounts }) => volumeMounts ?? []).map(({ name }) => name);
  const known = (spec.volumes ?? []).map(({ name }) => name);
  const claims = mounted.filter(name => !known.includes(name));
  const volumes = claims.map(name => ({ name, persistentVolumeClaim: { claimName: name } }));
  return { ...pod, spec: { ...spec, volumes: [...(spec.volumes ?? []), ...volumes] } };
}

test.each(Object.entries(VALUE_SETS))('the API server accepts the chart: %s', async (_, values) => {
  await validate(await renderChart(helm, values, { release: 'blue', namespace: NAMESPACE, apis: APIS }));
});

describe('the output of kustomize', () => {
  const elsewhere = { namespace: NAMESPACE };

  test.each(['default', 'evaluation'])('is accepted by the API server: config/%s', async folder => {
    const objects = await buildOverlays({ ...elsewhere, resources: [folder], ...REQUIRED_OVERLAY });
    await validate(objects.filter(({ kind }) => kind !== 'Namespace'));
  });

  test('is accepted for config/evaluation with all components in another namespace', async () => {
    const objects = await buildOverlays(
      {
        ...elsewhere,
        resources: ['evaluation'],
        components: [
          'components/monitoring',
          'components/network-policy',
          'components/gateway',
          'components/namespaced-secrets',
        ],
        ...REQUIRED_OVERLAY,
      },
      { components: ['components/namespace'] },
    );
    const rest = objects.filter(({ kind }) => kind !== 'Namespace');
    await validate(rest);
    const kinds = rest.map(({ kind }) => kind);
    expect(kinds).toEqual(expect.arrayContaining(['PodMonitor', 'PrometheusRule', 'NetworkPolicy', 'HTTPRoute']));
    const text = JSON.stringify(rest);
    expect(text).toContain(`system:serviceaccount:${NAMESPACE}:sluice-facade`);
    expect(text).not.toContain('sluice-system');
  });
});

test('a chart for another cluster does not contain objects of an API that is missing', async () => {
  for (const name of ['monitoring', 'certificates']) {
    const objects = await renderChart(helm, VALUE_SETS[name] ?? {});
    expect(objects.filter(({ apiVersion }) => APIS.includes(apiVersion))).toEqual([]);
  }
});
