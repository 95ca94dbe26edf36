import { Cluster, type Redis } from 'ioredis';
import { nameNode } from './connections.ts';

/** The time for which the error of a node is remembered while the Cluster is being used, in milliseconds. */
const NODE_ERROR_MS = 60_000;

/** After a restart, Redis accepts connections while it loads its data. */
const LOADING = 'the connection is open, but Redis is still loading its data or does not respond';

/**
 * Remembers the reason why connecting to Redis (or to any node of a Cluster) has failed, until it succeeds. In a
 * Cluster, some connections only read the slots. Some are never needed again.
 */
export function followConnectionErrors(
  redis: Redis | Cluster,
  nowMs = () => performance.now(),
): () => Error | undefined {
  let last: NodeJS.ErrnoException | undefined;
  let failedMs = 0;
  const failed = (error: Error) => {
    last = error;
    failedMs = nowMs();
  };
  const succeeded = () => (last = undefined);
  if (redis instanceof Cluster) {
    // The error returned by the Cluster is less helpful because it only states that all nodes have failed.
    redis.on('node error', (error: Error, node: string) => failed(nameNode(error, node)));
    redis.on('+node', (node: Redis) => node.on('ready', succeeded));
    return () => (redis.status === 'ready' && nowMs() - failedMs > NODE_ERROR_MS ? undefined : last);
  }
  redis.on('error', failed);
  redis.on('sentinelError', failed);
  redis.on('connect', () => {
    // The network has a code for its errors, and works again. Other errors, such as a wrong password, remain.
    if (last === undefined || last.code !== undefined) failed(new Error(LOADING));
  });
  redis.on('ready', succeeded);
  return () => last;
}
