import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { type StartedCluster, startCluster } from './cluster.ts';
import { type Baseline, readBaseline, restoreBaseline } from './etcd-baseline.ts';

/** A cluster of the pool, and its content before the first use. */
interface Pooled {
  readonly cluster: StartedCluster;
  readonly baseline: Baseline;
}

/** The data that a borrower receives. All other operations use the pool because the processes are its children. */
export interface Lease {
  readonly id: string;
  readonly kubeconfig: string;
  readonly url: string;
  readonly kubectlCache: string;
}

export interface ClusterPool {
  /** The address for `borrowCluster`. */
  readonly url: string;
  readonly stop: () => Promise<void>;
}

/** The calls of a borrower, by path. */
type Calls = Readonly<
  Record<string, (body: { id: string; controllerManager?: boolean; signal?: NodeJS.Signals }) => Promise<unknown>>
>;

/**
 * Lends clusters to test files, each of which uses one cluster at a time. Starting an API server takes longer than most
 * files. A returned cluster is reset to its state after `prepare`. There are as many clusters as concurrent files.
 */
export async function openClusterPool(prepare: (cluster: StartedCluster) => Promise<void>): Promise<ClusterPool> {
  const idle: Pooled[] = [];
  const lent = new Map<string, Pooled & { readonly stopManager: (() => Promise<void>) | undefined }>();
  const all = new Set<StartedCluster>();
  let leases = 0;

  async function make(): Promise<Pooled> {
    const cluster = await startCluster();
    all.add(cluster);
    await prepare(cluster);
    return { cluster, baseline: await readBaseline(cluster.etcdUrl) };
  }

  function find(id: string) {
    const found = lent.get(id);
    if (found === undefined) throw new Error(`lease ${id} has ended`);
    return found;
  }

  async function lend(controllerManager: boolean): Promise<Lease> {
    const pooled = idle.pop() ?? (await make());
    const { kubeconfig, url, kubectlCache } = pooled.cluster;
    const id = String(++leases);
    const stopManager = controllerManager ? await pooled.cluster.startControllerManager() : undefined;
    lent.set(id, { ...pooled, stopManager });
    return { id, kubeconfig, url, kubectlCache };
  }

  async function takeBack(id: string): Promise<void> {
    const { cluster, baseline, stopManager } = find(id);
    lent.delete(id);
    await stopManager?.();
    await cluster.startApiServer();
    await restoreBaseline(cluster.etcdUrl, baseline);
    idle.push({ cluster, baseline });
  }

  const calls: Calls = {
    '/lend': ({ controllerManager = false }) => lend(controllerManager),
    '/return': ({ id }) => takeBack(id),
    '/kill': ({ id, signal }) => find(id).cluster.killApiServer(signal),
    '/start': ({ id }) => find(id).cluster.startApiServer(),
  };
  async function serve(request: IncomingMessage): Promise<{ readonly status: number; readonly body: unknown }> {
    const call = calls[request.url ?? ''];
    if (call === undefined) return { status: 404, body: { message: `no such call: ${request.url}` } };
    try {
      return { status: 200, body: await call((await json(request)) as never) };
    } catch (error) {
      return { status: 500, body: { message: String(error) } };
    }
  }

  const server = createServer((request, response) => {
    void serve(request).then(({ status, body }) => response.writeHead(status).end(JSON.stringify(body ?? null)));
  });
  // A cluster whose binaries must be built first takes minutes.
  server.requestTimeout = 0;
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: async () => {
      server.close();
      server.closeAllConnections();
      await Promise.all([...all].map(cluster => cluster.stop()));
    },
  };
}
