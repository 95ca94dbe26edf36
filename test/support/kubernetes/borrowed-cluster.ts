import { ensureBinaries } from './binaries.ts';
import type { Cluster } from './cluster.ts';
import type { Lease } from './cluster-pool.ts';
import { kubectlFor } from './kubectl.ts';

/** Borrows a cluster from the pool at `pool`, which is returned by `stop`. */
export async function borrowCluster(
  pool: string,
  options: { readonly controllerManager?: boolean } = {},
): Promise<Cluster> {
  async function call<T>(path: string, body: object): Promise<T> {
    const response = await fetch(pool + path, { method: 'POST', body: JSON.stringify(body) });
    const answer = await response.json();
    if (!response.ok) throw new Error(`cluster pool: ${(answer as { message: string }).message}`);
    return answer as T;
  }
  const [lease, { kubectl }] = await Promise.all([call<Lease>('/lend', options), ensureBinaries(['kubectl'])]);
  const { id, kubeconfig, url, kubectlCache } = lease;
  let returned: Promise<void> | undefined;
  return {
    kubeconfig,
    url,
    kubectl: kubectlFor({ binary: kubectl, kubeconfig, cache: kubectlCache }),
    killApiServer: signal => call('/kill', { id, signal }),
    startApiServer: () => call('/start', { id }),
    stop: () => (returned ??= call('/return', { id })),
  };
}
