import { join } from 'node:path';
import { type Issuer, startIssuer } from '../issuer.ts';
import { isBinaryThere } from '../kubernetes/binaries.ts';
import { type Cluster, startCluster } from '../kubernetes/cluster.ts';
import { ESTABLISHED, untilEstablished } from '../kubernetes/crds.ts';
import { DOCUMENTED, startRedis } from '../redis/server.ts';
import { type Sluice, startSluice } from '../sluice.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import type { Closers } from './closers.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const CRDS = join(ROOT, 'crds');
const RBAC = join(ROOT, 'config', 'rbac');

/** The namespace of the controller's Lease, which is the default of SLUICE_NAMESPACE. */
const SYSTEM_NAMESPACE = 'sluice-system';

const NO_CONTROLLER_MANAGER =
  'without kube-controller-manager: deleted namespaces stay Terminating, and owner references are not collected; `make test` builds it';

export type Stack = {
  /** The temporary folder of this run, which is deleted at its end. */
  readonly folder: string;
  readonly cluster: Cluster;
  /** The identity provider whose access tokens the facade accepts. */
  readonly issuer: Issuer;
  /** The process with all roles. */
  readonly sluice: Sluice;
};

/** Runs kubectl and returns its output. @throws with its standard error */
export async function kubectl(cluster: Cluster, args: readonly string[], stdin?: string): Promise<string> {
  const { code, stdout, stderr } = await cluster.kubectl(args, stdin === undefined ? {} : { stdin });
  if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr.trim()}`);
  return stdout;
}

/** Returns the number of lines in an output because kubectl writes one line for each object. */
export function lines(output: string): number {
  return output.trim().split('\n').length;
}

/**
 * Starts Sluice on loopback: the Kubernetes API with the Sluice kinds, a Redis that uses fsync for each write, and
 * `bin/sluice all` with a new root key. Immediately passes each started part to `closers`, so an interrupted start can
 * be stopped.
 */
export async function startStack(options: { tell: (line: string) => void; closers: Closers }): Promise<Stack> {
  const { tell, closers } = options;
  const folder = await temporaryFolder('run');
  closers.add(folder.remove);
  // The binary is built for the tests. Building it only for this purpose would take minutes.
  const controllerManager = isBinaryThere('kube-controller-manager');
  const [cluster, redis] = await Promise.all([
    startCluster({ controllerManager }).then(started => {
      closers.add(started.stop);
      tell(`the Kubernetes API answers at ${started.url}`);
      if (!controllerManager) tell(NO_CONTROLLER_MANAGER);
      return started;
    }),
    startRedis({ appendonly: true, appendfsync: 'always', extra: DOCUMENTED }).then(started => {
      closers.add(started.stop);
      tell(`Redis answers at ${started.url}`);
      return started;
    }),
  ]);
  const definitions = ['-f', CRDS];
  await kubectl(cluster, ['apply', '--server-side', ...definitions]);
  const served = await untilEstablished(() => kubectl(cluster, [...ESTABLISHED, ...definitions]));
  await kubectl(cluster, ['create', 'namespace', SYSTEM_NAMESPACE]);
  await kubectl(cluster, ['apply', '--server-side', '-f', RBAC]);
  tell(`the API serves the ${lines(served)} kinds of Sluice`);

  const issuer = await startIssuer();
  closers.add(issuer.close);
  tell(`an identity provider answers at ${issuer.url}`);

  const sluice = await startSluice({
    kubeconfig: cluster.kubeconfig,
    redisUrl: redis.url,
    unbundled: true,
    env: {
      ...issuer.env,
      SLUICE_ALLOWED_NETWORKS: '127.0.0.0/8,::1/128',
      SLUICE_LOG_LEVEL: process.env.SLUICE_LOG_LEVEL ?? 'info',
    },
  });
  closers.add(async () => {
    await sluice.stop();
  });
  tell(`sluice is ready: all roles in one process, ${sluice.opsUrl}/readyz`);
  return { folder: folder.path, cluster, issuer, sluice };
}
