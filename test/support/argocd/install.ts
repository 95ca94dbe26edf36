import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Cluster } from '../kubernetes/cluster.ts';

type Access = Pick<Cluster, 'kubectl'>;

export const ARGOCD_NAMESPACE = 'argocd';

const SERVED_WITHIN_MS = 60_000;

const ours = (kind: string, name: string) => ({ kind, metadata: { name, namespace: ARGOCD_NAMESPACE } });

/** The parts of the Argo CD installation that its server and its Redis would provide. */
const OBJECTS = [
  { apiVersion: 'v1', ...ours('Secret', 'argocd-redis'), stringData: { auth: '' } },
  {
    apiVersion: 'argoproj.io/v1alpha1',
    ...ours('AppProject', 'default'),
    spec: {
      sourceRepos: ['*'],
      destinations: [{ namespace: '*', server: '*' }],
      clusterResourceWhitelist: [{ group: '*', kind: '*' }],
    },
  },
];

async function succeed({ kubectl }: Access, args: readonly string[], stdin = ''): Promise<void> {
  const { code, stderr } = await kubectl(args, { stdin });
  if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
}

/** Waits until the API server serves the definitions. `kubectl wait` fails if there is no condition yet. */
async function untilServed(cluster: Access): Promise<void> {
  const startedMs = performance.now();
  for (;;) {
    const { code, stderr } = await cluster.kubectl(['get', 'applications.argoproj.io,appprojects.argoproj.io', '-A']);
    if (code === 0) return;
    if (performance.now() - startedMs > SERVED_WITHIN_MS) throw new Error(stderr);
    await delay(200);
  }
}

/**
 * Applies the definitions and settings of Argo CD.
 *
 * @param manifests folder with Argo CD's own manifests
 * @param settings patches of the `argocd-cm` ConfigMap, such as health checks
 */
export async function installArgoCd(
  cluster: Access,
  manifests: string,
  settings: readonly string[] = [],
): Promise<void> {
  const applying = ['apply', '--server-side', '--namespace', ARGOCD_NAMESPACE];
  await succeed(cluster, ['apply', '--server-side', '-k', join(manifests, 'crds')]);
  await succeed(cluster, ['create', 'namespace', ARGOCD_NAMESPACE]);
  await untilServed(cluster);
  await succeed(cluster, [...applying, '-k', join(manifests, 'base', 'config')]);
  await succeed(cluster, [...applying, '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items: OBJECTS }));
  for (const file of settings) {
    const patching = ['patch', 'configmap', 'argocd-cm', '--namespace', ARGOCD_NAMESPACE, '--type=merge'];
    await succeed(cluster, [...patching, '--patch-file', file]);
  }
}
