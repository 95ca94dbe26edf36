import type { Redis } from 'ioredis';
import type { RedisNode } from './redis-url.ts';

/** How long replicas may take to confirm what a master has written. */
const CONFIRM_MS = 1_000;

/** Too few replicas have confirmed a write. It was executed by the master, but a failover could lose it. */
export class NotReplicatedError extends Error {
  override readonly name = 'NotReplicatedError';
}

/** Waits until replicas have confirmed what their master has written. */
export interface Replicas {
  /**
   * Resolves once enough replicas have everything that this master had executed before the call.
   *
   * @param node connection over which the write was executed
   * @throws NotReplicatedError if there are too few of them, or if they take more than a second
   */
  readonly confirm: (node: Redis) => Promise<void>;
  /** Returns the reason if the last write of a master could not be confirmed. */
  readonly problem: () => Error | undefined;
  readonly close: () => void;
}

interface Master {
  readonly redis: Redis;
  readonly connected: Promise<void>;
  /** The WAIT in progress, and the next one, which waits for it and covers all writes until then. */
  running: Promise<void>;
  next: Promise<void> | undefined;
}

const ignore = (): undefined => undefined;

/** Returns the address at the other end of a connection, which Sentinel may change. */
function peerOf({ stream }: Redis): string | undefined {
  const { remoteAddress, remotePort } = stream ?? {};
  return remoteAddress === undefined ? undefined : `${remoteAddress} ${remotePort}`;
}

/**
 * Uses a separate connection to each master, because WAIT blocks its connection. Calls at the same time share a WAIT.
 *
 * @param options.replicas how many replicas have to confirm a write
 * @param options.cluster whether masters are addressed by their host and port
 * @param options.connect creates a connection without a retry: to a node, or to the only Redis, or to the master
 */
export function createReplicas(options: {
  readonly replicas: number;
  readonly cluster: boolean;
  readonly connect: (node?: RedisNode) => Redis;
}): Replicas {
  const { replicas, cluster, connect } = options;
  const masters = new Map<string, Master>();
  const problems = new Map<string, Error>();

  function masterAt(name: string, node: Redis): Master {
    const known = masters.get(name);
    if (known !== undefined) return known;
    const { host = '', port = 0 } = node.options;
    const redis = connect(cluster ? { host, port } : undefined);
    redis.on('error', ignore);
    const master: Master = { redis, connected: redis.connect(), running: Promise.resolve(), next: undefined };
    master.connected.catch(ignore);
    redis.on('close', () => {
      if (masters.get(name) === master) masters.delete(name);
    });
    masters.set(name, master);
    return master;
  }

  async function ask({ redis, connected }: Master): Promise<void> {
    await connected;
    // WAIT covers what was written before the last command of its own connection, by whichever connection.
    const [, confirmed] = await Promise.all([redis.call('ping'), redis.call('wait', replicas, CONFIRM_MS)]);
    if (Number(confirmed) >= replicas) return;
    throw new NotReplicatedError(
      `only ${confirmed} of ${replicas} replicas have confirmed a write within ${CONFIRM_MS} ms (SLUICE_REDIS_WAIT_REPLICAS)`,
    );
  }

  /** Joins the next WAIT. */
  function join(master: Master): Promise<void> {
    master.next ??= master.running.catch(ignore).then(() => {
      master.next = undefined;
      master.running = ask(master);
      return master.running;
    });
    return master.next;
  }

  return {
    async confirm(node) {
      const peer = peerOf(node);
      const name = cluster ? `${node.options.host}:${node.options.port}` : '';
      const master = masterAt(name, node);
      try {
        await join(master);
        // After a failover, the successor's replicas say nothing about a write of the former master.
        if (peer === undefined || peerOf(master.redis) !== peer) {
          master.redis.disconnect();
          throw new NotReplicatedError('the master changed before its replicas have confirmed a write');
        }
        problems.delete(name);
      } catch (error) {
        problems.set(name, error as Error);
        throw error;
      }
    },
    problem: () => problems.values().next().value,
    close() {
      for (const { redis } of masters.values()) redis.disconnect();
      masters.clear();
    },
  };
}
