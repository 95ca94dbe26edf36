import { inject } from 'vitest';
import { borrowCluster } from '../../support/kubernetes/borrowed-cluster.ts';
import type { Cluster } from '../../support/kubernetes/cluster.ts';
import { DOCUMENTED, type RedisServer, startRedis } from '../../support/redis/server.ts';
import { type Sluice, type SluiceOptions, startSluice } from '../../support/sluice.ts';

export interface Installation {
  readonly cluster: Cluster;
  readonly redis: RedisServer;
  /** Starts one more process against this cluster and this Redis. */
  readonly start: (options?: Partial<SluiceOptions>) => Promise<Sluice>;
  /** Ends everything that was started, processes first, and gives the cluster back. */
  readonly stop: () => Promise<void>;
}

/** A cluster with our definitions and the Lease's namespace, and a Redis that fsyncs; no process of ours yet. */
export async function install(options: { readonly controllerManager?: boolean } = {}): Promise<Installation> {
  const [cluster, redis] = await Promise.all([
    borrowCluster(inject('clusterPool'), options),
    startRedis({ appendonly: true, extra: DOCUMENTED }),
  ]);
  const processes: Sluice[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(processes.map(each => each.kill('SIGKILL')));
    await Promise.all([cluster.stop(), redis.stop()]);
  };
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
