import type { Redis } from 'ioredis';
import { withDeadline } from '../../time/deadline.ts';
import type { RedisNode } from './redis-url.ts';

/** The time that replicas can take to confirm a write. */
const CONFIRM_MS = 1_000;

/** Not enough replicas have confirmed a write. The master has performed the write, but a failover could lose it. */
export class NotReplicatedError extends Error {
  override readonly name = 'NotReplicatedError';
}

/** Waits until replicas have confirmed the writes of their master. */
export interface Replicas {
  /**
   * Resolves when enough replicas have received all writes performed by this master before the call.
   *
   * @param node connection over which the write was executed
   * @throws NotReplicatedError if there are not enough replicas, or if they take more than one second
   */
  readonly confirm: (node: Redis) => Promise<void>;
  /** Returns the reason if the last write of a master could not be confirmed less than a minute ago. */
  readonly problem: () => Error | undefined;
  readonly close: () => void;
}

interface Master {
  readonly redis: Redis;
  /** The server's id, as soon as it is connected. */
  readonly serverId: Promise<string>;
  /** The WAIT in progress, and the next WAIT, which includes all writes until it is sent. */
  running: Promise<void>;
  next: Promise<void> | undefined;
}

const MASTER_CHANGED = 'the master changed before the write was confirmed by its replicas';

/** The time for which we remember a problem. A master without any further writes does not have a problem. */
const PROBLEM_MS = 60_000;

const ignore = (): undefined => undefined;

/** Returns the id of the server that the connection is using. */
async function readServerId(redis: Redis): Promise<string> {
  const { stream } = redis;
  const [, id] = /^run_id:(\w+)/m.exec(String(await redis.call('info', 'server'))) ?? [];
  if (id === undefined || redis.stream !== stream) throw new NotReplicatedError(MASTER_CHANGED);
  return id;
}

/**
 * Uses a separate connection to each master because WAIT blocks its connection. Calls that are made at the same time
 * share a single WAIT.
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
  /** Server ids, by the connection used for writes. */
  const serverIds = new WeakMap<object, Promise<string>>();
  /** By master. */
  const problems = new Map<string, { readonly error: Error; readonly untilMs: number }>();

  function masterAt(name: string, node: Redis): Master {
    const known = masters.get(name);
    if (known !== undefined) return known;
    const { host = '', port = 0 } = node.options;
    const redis = connect(cluster ? { host, port } : undefined);
    redis.on('error', ignore);
    // Without a deadline, this would try to connect until a Sentinel responds.
    const serverId = withDeadline(CONFIRM_MS, async () => {
      await redis.connect();
      return readServerId(redis);
    });
    const master: Master = { redis, serverId, running: Promise.resolve(), next: undefined };
    const drop = () => {
      if (masters.get(name) === master) masters.delete(name);
      redis.disconnect();
    };
    serverId.catch(drop);
    redis.once('close', drop);
    masters.set(name, master);
    return master;
  }

  /** Returns a connection's current server id. */
  function serverIdOf(node: Redis): Promise<string> {
    const { stream } = node;
    let id = serverIds.get(stream);
    if (id === undefined) {
      id = readServerId(node);
      id.catch(() => serverIds.delete(stream));
      serverIds.set(stream, id);
    }
    return id;
  }

  async function ask({ redis, serverId }: Master): Promise<void> {
    await serverId;
    // WAIT includes all writes before the last command of its own connection regardless of the connection used for
    // writing.
    const [, confirmed] = await Promise.all([redis.call('ping'), redis.call('wait', replicas, CONFIRM_MS)]);
    if (Number(confirmed) >= replicas) return;
    throw new NotReplicatedError(
      `only ${confirmed} of ${replicas} replicas confirmed a write within ${CONFIRM_MS} ms (SLUICE_REDIS_WAIT_REPLICAS)`,
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
      const name = cluster ? `${node.options.host}:${node.options.port}` : '';
      try {
        const written = serverIdOf(node);
        const master = masterAt(name, node);
        const [, writtenTo, confirmedBy] = await Promise.all([join(master), written, master.serverId]);
        // After a failover, the replicas of the new master can't confirm a write of the previous master. Both may use
        // the same address, e.g. when using a Service.
        if (writtenTo !== confirmedBy) {
          master.redis.disconnect();
          throw new NotReplicatedError(MASTER_CHANGED);
        }
        problems.delete(name);
      } catch (error) {
        problems.set(name, { error: error as Error, untilMs: performance.now() + PROBLEM_MS });
        throw error;
      }
    },
    problem: () => [...problems.values()].find(({ untilMs }) => performance.now() < untilMs)?.error,
    close() {
      for (const { redis } of masters.values()) redis.disconnect();
      masters.clear();
    },
  };
}
