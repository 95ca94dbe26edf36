import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type TemporaryFolder, temporaryFolder } from '../temporary-folder.ts';
import type { Cluster } from './cluster.ts';

const RBAC = join(import.meta.dirname, '..', '..', '..', 'config', 'rbac');

/** The namespace of the service accounts, which is the default of SLUICE_NAMESPACE. */
const SYSTEM_NAMESPACE = 'sluice-system';

/** The API server reads admission policies once a second. */
const APPLIED_WITHIN_MS = 20_000;

type Access = Pick<Cluster, 'kubectl'>;

async function succeed({ kubectl }: Access, args: readonly string[], stdin = ''): Promise<string> {
  const { code, stdout, stderr } = await kubectl(args, { stdin });
  if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
  return stdout;
}

/**
 * Applies the manifests in config/rbac and waits until their admission policies have been applied. Creates the
 * namespace `sluice-system` if it does not exist. Apply the kinds first.
 *
 * @throws if a manifest is rejected, or if the policies have not been applied within 20 s
 */
export async function applyPermissions(cluster: Access): Promise<void> {
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: SYSTEM_NAMESPACE } };
  const applying = ['apply', '--server-side', '--force-conflicts', '-f'];
  await succeed(cluster, [...applying, '-'], JSON.stringify(namespace));
  await succeed(cluster, [...applying, RBAC]);
  const startedMs = performance.now();
  while (!(await isLastPolicyInForce(cluster))) {
    if (performance.now() - startedMs > APPLIED_WITHIN_MS) throw new Error('the admission policies are not applied');
    await delay(100);
  }
}

/** The policy for accounts is applied last. */
async function isLastPolicyInForce({ kubectl }: Access): Promise<boolean> {
  const account = {
    apiVersion: 'sluice.dev/v1alpha1',
    kind: 'Account',
    metadata: { name: 'never-stored' },
    spec: { plan: 'Metered', owners: [{ issuer: 'https://issuer.example', subject: 'nobody', role: 'Owner' }] },
  };
  const facade = `--as=system:serviceaccount:${SYSTEM_NAMESPACE}:sluice-facade`;
  const { stderr } = await kubectl(['create', '--dry-run=server', facade, '-f', '-'], {
    stdin: JSON.stringify(account),
  });
  return stderr.includes('sluice-facade-accounts');
}

let shared: Promise<TemporaryFolder> | undefined;
let count = 0;

/**
 * Writes a kubeconfig for a service account in `sluice-system`, including a token that is valid for one day. It has the
 * same permissions as this role in a pod. Call `applyPermissions` first.
 * @returns its path, which is deleted when this process ends
 */
export async function kubeconfigOf(
  cluster: Access,
  serviceAccount: string,
  namespace = SYSTEM_NAMESPACE,
): Promise<string> {
  const token = await succeed(cluster, ['create', 'token', serviceAccount, '-n', namespace, '--duration=24h']);
  // The kubeconfig of the administrator (including certificates) with another user.
  const config = JSON.parse(
    await succeed(cluster, ['config', 'view', '--raw', '--minify', '--flatten', '-o=json']),
  ) as {
    readonly users: readonly { readonly name: string }[];
  };
  const users = config.users.map(({ name }) => ({ name, user: { token: token.trim() } }));
  shared ??= temporaryFolder('service-accounts');
  const path = join((await shared).path, `${serviceAccount}-${++count}.kubeconfig`);
  await writeFile(path, JSON.stringify({ ...config, users }), { mode: 0o600 });
  return path;
}
