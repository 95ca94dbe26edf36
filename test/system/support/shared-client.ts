import { connect, type KubeClient } from '../../../src/kube/client.ts';
import type { Cluster } from '../../support/kubernetes/cluster.ts';

/** The clients of this process, by the path of their kubeconfig. Unused connections are closed after a few seconds. */
const clients = new Map<string, KubeClient>();

/**
 * Returns the administrator's client for a cluster. All test files of this process share it, because reading an object
 * on a new connection takes five times as much CPU time. Do not close it.
 */
export function clientOf({ kubeconfig }: Pick<Cluster, 'kubeconfig'>): KubeClient {
  const client = clients.get(kubeconfig) ?? connect({ kubeconfig });
  clients.set(kubeconfig, client);
  return client;
}
