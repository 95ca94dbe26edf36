import { Cluster, Redis, type RedisOptions } from 'ioredis';
import type { Logger } from '../../telemetry/log.ts';
import { backoffMs } from '../../time/backoff.ts';
import { createRedisAccess, type RedisAccess } from './redis-access.ts';
import type { RedisSettings } from './redis-settings.ts';
import { parseRedisUrl, type RedisNode, type RedisUrl } from './redis-url.ts';
import { SentinelConnections } from './sentinel-connections.ts';

/** A Redis that we were able to connect to. The target can be used to open more connections. */
export interface RedisConnections {
  readonly cluster: boolean;
  /** Creates a client with the same options as all other clients, which is not connected yet. */
  readonly create: () => Redis | Cluster;
  /**
   * Creates a client that can be used for subscriptions. The client is not connected yet. It becomes ready again
   * whenever messages might have been lost.
   *
   * @param commands a client created by `create`, used to find the nodes of a Cluster
   */
  readonly createSubscriber: (commands: Redis | Cluster) => Redis;
  /** The addresses in the settings, which are only some of the nodes for a Cluster. */
  readonly nodes: readonly RedisNode[];
  /**
   * Creates a connection to a single node, which will not be reconnected. Without a node, this connects to the only
   * Redis, or to the master.
   */
  readonly createOnce: (node?: RedisNode) => Redis;
}

/** Replies should use the same format as in RESP2. */
type Options = Omit<RedisOptions, 'replyMapping'>;

/**
 * Options required by every role. If the reply to a command is lost, the command must not be repeated automatically,
 * because it could be written twice.
 */
const FAIL_FAST = {
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  enableOfflineQueue: false,
  // A subscriber automatically subscribes again. There is no handler for commands sent by ioredis itself, so a failure
  // would end the process.
  autoResubscribe: false,
  commandTimeout: 5_000,
  connectTimeout: 5_000,
  // A server that hangs, or a network that loses all packets, does not close a connection. Without this, it would be
  // used until TCP gives up after 15 minutes, even if another server has taken over.
  socketTimeout: 10_000,
  lazyConnect: true,
} as const;

/**
 * The shortest time between two reconnects because of a replica, in milliseconds. Roles read their data again after
 * each.
 */
const LEAVE_REPLICA_MS = 1_000;

/** Milliseconds before the n-th reconnect: 100 ms to 1 s, with jitter. */
function reconnectDelayMs(times: number): number {
  return backoffMs({ firstMs: 100, mostMs: 1_000 }, times, Math.random);
}

/**
 * Connects to Redis once to detect a Cluster.
 *
 * @throws the error of the last address
 */
export async function findRedis(settings: RedisSettings, log: Logger): Promise<RedisConnections> {
  const url = parseRedisUrl(settings.url);
  const access = createRedisAccess(settings, log);
  const cluster = await isCluster(url, access);
  const createSingle = () => {
    const options = { ...optionsOf(url, access), ...FAIL_FAST, retryStrategy: reconnectDelayMs, ...access.options() };
    const single = new Redis(options);
    access.keepFresh(single.options);
    return single;
  };
  const createOnce = (node?: RedisNode) => {
    const at = node ?? optionsOf(url, access);
    const once = { retryStrategy: () => null, keepAlive: 10_000 };
    return new Redis({ ...at, ...FAIL_FAST, ...once, ...access.options() });
  };
  return {
    cluster,
    create: () => (cluster ? createCluster(url, access) : createSingle()),
    createSubscriber: commands =>
      commands instanceof Cluster ? createClusterSubscriber(url, access, commands) : createSingle(),
    nodes: url.nodes,
    createOnce,
  };
}

/**
 * Connects to all masters of a Cluster. By default, ioredis connects to a node when it sends the first command and
 * rejects further commands until the connection is ready. A master that does not respond is not an error, because the
 * other masters are working.
 */
async function connectNodes(cluster: Cluster): Promise<void> {
  const waiting = cluster.nodes('master').filter(node => node.status === 'wait');
  await Promise.allSettled(waiting.map(node => node.connect()));
}

/**
 * Connects a client for the first time.
 *
 * @throws if a Cluster is down. ioredis would then connect again, but its promise would never be settled.
 */
export async function connectFirst(redis: Redis | Cluster): Promise<void> {
  if (!(redis instanceof Cluster)) return redis.connect();
  const closed = Promise.withResolvers<never>();
  let ofNode = '';
  const onNodeError = (error: Error, node: string) => (ofNode = `: ${nameNode(error, node).message}`);
  const onClose = () =>
    closed.reject(new Error(`the Redis Cluster is down (see CLUSTER INFO), or its nodes are not reachable${ofNode}`));
  redis.on('node error', onNodeError);
  redis.once('close', onClose);
  try {
    await Promise.race([redis.connect(), closed.promise]);
    await connectNodes(redis);
  } finally {
    redis.off('node error', onNodeError);
    redis.off('close', onClose);
  }
}

/** Returns the same error, which also names the node of the Cluster. */
export function nameNode(error: NodeJS.ErrnoException, node: string): Error {
  const { code, message } = error;
  return Object.assign(new Error(`${node}: ${message}`), code === undefined ? {} : { code });
}

/** Returns the Redis address, or the addresses of the Sentinels. */
function optionsOf({ nodes, tls, sentinel }: RedisUrl, access: RedisAccess): Options {
  let reconnectedMs = Number.NEGATIVE_INFINITY;
  // After a failover, the previous master no longer accepts writes. A new connection will use the new master, as soon
  // as there is one.
  const reconnectOnError = (error: Error) => {
    const nowMs = performance.now();
    if (!error.message.startsWith('READONLY') || nowMs - reconnectedMs < LEAVE_REPLICA_MS) return false;
    reconnectedMs = nowMs;
    return true;
  };
  if (sentinel === undefined) return { ...(nodes[0] as RedisNode), reconnectOnError };
  return {
    Connector: SentinelConnections,
    sentinels: [...nodes],
    name: sentinel.master,
    db: sentinel.db,
    enableTLSForSentinelMode: tls,
    // A failover is announced by the Sentinels. Required because a master that hangs does not close its connections.
    failoverDetector: true,
    sentinelRetryStrategy: reconnectDelayMs,
    sentinelReconnectStrategy(this: RedisOptions, times: number) {
      // When ioredis connects to a Sentinel, it copies these options and then calls this as a method of the copy.
      const { sentinelUsername: username, sentinelPassword: password, sentinelTLS: tls } = access.options();
      Object.assign(this, { username, password, tls });
      return reconnectDelayMs(times);
    },
    sentinelCommandTimeout: FAIL_FAST.commandTimeout,
    reconnectOnError,
  };
}

function createCluster(url: RedisUrl, access: RedisAccess): Cluster {
  const cluster = new Cluster([...url.nodes], {
    redisOptions: { ...FAIL_FAST, ...access.options() },
    enableOfflineQueue: false,
    // Never resend the commands that were in progress when the connection to a node was closed.
    retryDelayOnFailover: 0,
    lazyConnect: true,
    slotsRefreshTimeout: 2_000,
    clusterRetryStrategy: reconnectDelayMs,
    // Let each connection resolve its name. If ioredis resolved all names first, one that can't be resolved would
    // prevent the use of all nodes, and certificates would be compared with addresses.
    dnsLookup: (name, done) => done(null, name),
  });
  cluster.on('+node', (node: Redis) => access.keepFresh(node.options));
  return cluster;
}

/**
 * Creates a subscriber connection to any node of a Cluster because all nodes receive all messages. If access is denied
 * or the nodes are not available, the ioredis subscriber would reconnect without a delay.
 */
function createClusterSubscriber(url: RedisUrl, access: RedisAccess, commands: Cluster): Redis {
  const chooseNode = (): RedisNode => {
    const known = commands.nodes().map(({ options: { host = '', port = 0 } }) => ({ host, port }));
    const nodes = [...known, ...url.nodes];
    return nodes[Math.floor(Math.random() * nodes.length)] as RedisNode;
  };
  const subscriber: Redis = new Redis({
    ...chooseNode(),
    ...FAIL_FAST,
    ...access.options(),
    retryStrategy: times => {
      Object.assign(subscriber.options, chooseNode());
      return reconnectDelayMs(times);
    },
  });
  access.keepFresh(subscriber.options);
  commands.on('-node', ({ options: { host, port } }: Redis) => {
    if (host === subscriber.options.host && port === subscriber.options.port) subscriber.disconnect(true);
  });
  return subscriber;
}

/** Checks if Redis is a Cluster (`INFO cluster`). Tries all addresses until one of them responds. */
async function isCluster(url: RedisUrl, access: RedisAccess): Promise<boolean> {
  if (url.sentinel !== undefined) {
    await askMaster(url, url.sentinel.db, access);
    return false;
  }
  let last: unknown;
  for (const node of url.nodes) {
    try {
      // Without a ready check, ioredis does not wait until Redis has loaded its data, and reports the reason.
      const info = await ask({ ...node, ...access.options(), enableReadyCheck: false }, probe => probe.info());
      if (/^loading:1/m.test(info)) throw new Error('LOADING Redis is loading the dataset in memory');
      return info.includes('cluster_enabled:1');
    } catch (error) {
      last = error;
    }
  }
  throw last;
}

/**
 * Asks the master for the database. If this fails, queries the Sentinels because ioredis does not report why a Sentinel
 * is unreachable.
 */
async function askMaster(url: RedisUrl, db: number, access: RedisAccess): Promise<void> {
  try {
    await ask({ ...optionsOf(url, access), ...access.options() }, probe => probe.select(db));
  } catch (error) {
    if (!(error as Error).message.includes('sentinel')) throw error;
    const { tls, sentinelUsername: username, sentinelPassword: password } = access.options();
    const options = Object.fromEntries(Object.entries({ tls, username, password }).filter(([, value]) => value));
    for (const node of url.nodes) {
      await ask({ ...node, ...options, enableReadyCheck: false }, probe => probe.ping()).catch((cause: Error) => {
        cause.message = `Sentinel ${node.host}:${node.port}: ${cause.message}`;
        throw cause;
      });
    }
    throw error;
  }
}

async function ask<T>(at: Options, question: (probe: Redis) => Promise<T>): Promise<T> {
  const once = { retryStrategy: () => null, sentinelRetryStrategy: () => null, failoverDetector: false };
  const probe = new Redis({ ...at, ...FAIL_FAST, ...once });
  // The reason must be returned here because the other error only states that the connection was closed.
  let cause: Error | undefined;
  let ofSentinel: Error | undefined;
  probe.on('error', error => {
    cause = error;
  });
  probe.on('sentinelError', (error: Error) => {
    ofSentinel = error;
  });
  try {
    await probe.connect();
    return await question(probe);
  } catch (error) {
    throw (cause?.message.startsWith('All sentinels') ? ofSentinel : cause) ?? error;
  } finally {
    probe.disconnect();
  }
}
