import { join } from 'node:path';
import { type Cluster, startCluster } from '../support/kubernetes/cluster.ts';
import { applyDefinitions } from '../support/kubernetes/crds.ts';
import { type RedisServer, startRedis } from '../support/redis/server.ts';
import { type Sluice, type SluiceOptions, startSluice } from '../support/sluice.ts';
import { kubectl } from './world.ts';

const CRDS = join(import.meta.dirname, '..', '..', 'crds');

export interface Installation {
  readonly cluster: Cluster;
  readonly redis: RedisServer;
  /** Starts one more process against this cluster and this Redis. */
  readonly start: (options?: Partial<SluiceOptions>) => Promise<Sluice>;
  /** Ends everything that was started, processes first. */
  readonly stop: () => Promise<void>;
}

/** A cluster with our definitions and the Lease's namespace, and a Redis that fsyncs; no process of ours yet. */
export async function install(options: { readonly controllerManager?: boolean } = {}): Promise<Installation> {
  const [cluster, redis] = await Promise.all([startCluster(options), startRedis({ appendonly: true })]);
  const processes: Sluice[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(processes.map(each => each.kill('SIGKILL')));
    await Promise.all([cluster.stop(), redis.stop()]);
  };
  try {
    await applyDefinitions(cluster.kubeconfig, CRDS);
    await kubectl(cluster, ['create', 'namespace', 'sluice-system']);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    cluster,
    redis,
    start: async (more = {}) => {
      const started = await startSluice({ kubeconfig: cluster.kubeconfig, redisUrl: redis.url, ...more });
      processes.push(started);
      return started;
    },
    stop,
  };
}
