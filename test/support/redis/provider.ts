import { hasContainers, startClusterNodesContainer, startRedisContainer } from '../containers.ts';
import { clusterArguments, clusterUrls, formCluster, startRedisCluster } from './cluster.ts';
import { MissingRedis, startRedis } from './server.ts';

export type Provided = { readonly url: string; readonly stop: () => Promise<void> };

const LEFT_ALONE = async (): Promise<void> => {};

/**
 * Provides a single Redis for a test run: `TEST_REDIS_URL`, redis-server on the PATH, or a container. It does not
 * keep an append-only file, which would take a sixth of the CPU time. Tests that restart Redis start their own.
 * @throws MissingRedis, whose message says how to get a Redis
 */
export async function provideRedis(): Promise<Provided> {
  const given = process.env.TEST_REDIS_URL;
  if (given) return { url: given, stop: LEFT_ALONE };
  return orContainer(() => startRedis(), startRedisContainer);
}

/**
 * Provides a Redis Cluster (nodes separated by commas) in the same order, from `TEST_REDIS_CLUSTER_URL`. @throws
 * MissingRedis
 */
export async function provideRedisCluster(): Promise<Provided> {
  const given = process.env.TEST_REDIS_CLUSTER_URL;
  if (given) return { url: given, stop: LEFT_ALONE };
  return orContainer(startRedisCluster, async () => {
    const { nodes, stop } = await startClusterNodesContainer(clusterArguments);
    await formCluster(nodes);
    return { url: clusterUrls(nodes.map(({ port }) => port)).join(','), stop };
  });
}

async function orContainer(local: () => Promise<Provided>, container: () => Promise<Provided>): Promise<Provided> {
  try {
    return await local();
  } catch (error) {
    if (!(error instanceof MissingRedis) || !(await hasContainers())) throw error;
    return container();
  }
}
