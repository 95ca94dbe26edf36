import { setTimeout as delay } from 'node:timers/promises';
import { inject } from 'vitest';
import { borrowCluster } from '../../support/kubernetes/borrowed-cluster.ts';
import type { Cluster } from '../../support/kubernetes/cluster.ts';
import { DOCUMENTED, type RedisServer, startRedis } from '../../support/redis/server.ts';
import { denialsOn, urlAs } from '../../support/redis/users.ts';
import { type Sluice, type SluiceOptions, type SluiceRole, startSluice } from '../../support/sluice.ts';
import { startSluiceRoles } from '../../support/sluice-roles.ts';

/** The permission for reading the Redis settings. Without it, each role would log a warning at startup. */
const READS_SETTINGS = ['+config|get'];

export interface Installation {
  readonly cluster: Cluster;
  readonly redis: RedisServer;
  /** Starts an additional process with this cluster and this Redis, using the Redis user of its role. */
  readonly start: (options?: Partial<SluiceOptions>) => Promise<Sluice>;
  /** Starts a separate process for each role. They can be used like a single process. */
  readonly startRoles: (options?: Partial<Omit<SluiceOptions, 'role' | 'redisUrl'>>) => Promise<Sluice>;
  /**
   * Stops all processes and then everything else, and returns the cluster.
   * @throws if Redis denied a command
   */
  readonly stop: () => Promise<void>;
}

/**
 * Starts a cluster with the kinds and the Lease namespace, and a Redis that uses fsync, without any processes of
 * Sluice.
 * @param options.clusterPool address of the pool of clusters. Defaults to the pool of the test project
 */
export async function install(
  options: { readonly controllerManager?: boolean; readonly clusterPool?: string } = {},
): Promise<Installation> {
  const [cluster, server] = await Promise.all([
    borrowCluster(options.clusterPool ?? inject('clusterPool'), options),
    startRedis({ appendonly: true, extra: DOCUMENTED, users: READS_SETTINGS }),
  ]);
  const denials = followDenials(server);
  const { redis } = denials;
  const processes: Sluice[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(processes.map(each => each.kill('SIGKILL')));
    await denials.collect();
    await Promise.all([cluster.stop(), server.stop()]);
    const found = denials.found();
    if (found.length > 0) throw new Error(`Redis denied commands that a role requires:\n${found.join('\n')}`);
  };
  return {
    cluster,
    redis,
    start: async (more = {}) => {
      const redisUrl = urlAs(more.role ?? 'all', redis.url);
      const started = await startSluice({ kubeconfig: cluster.kubeconfig, redisUrl, ...more });
      processes.push(started);
      return started;
    },
    startRoles: async (more = {}) => {
      const redisUrlOf = (role: SluiceRole) => urlAs(role, redis.url);
      const started = await startSluiceRoles({ kubeconfig: cluster.kubeconfig, ...more, redisUrlOf });
      processes.push(started);
      return started;
    },
    stop,
  };
}

/** The timeout for querying a Redis that a test has stopped, in milliseconds. */
const ASK_MS = 500;

/** Collects commands that Redis denied for users of Sluice, even if a test stops the Redis process. */
function followDenials(server: RedisServer) {
  const found: string[] = [];
  const collect = async () => {
    const asking = denialsOn(server).catch(() => []);
    found.push(...(await Promise.race([asking, delay(ASK_MS, [])])));
  };
  const redis: RedisServer = Object.assign(Object.create(server) as RedisServer, {
    kill: async (signal?: NodeJS.Signals) => {
      if (signal !== 'SIGSTOP' && signal !== 'SIGCONT') await collect();
      await server.kill(signal);
    },
    restart: async () => {
      await collect();
      await server.restart();
    },
  });
  return { redis, collect, found: () => [...new Set(found)] };
}
