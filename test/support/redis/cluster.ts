import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../free-port.ts';
import { type RedisOptions, type RedisServer, redisCommand, startRedis } from './server.ts';

const SLOTS = 16_384;
const FORM_DEADLINE_MS = 30_000;

interface ClusterNode {
  readonly port: number;
  readonly busPort: number;
}

export type RedisCluster = {
  /** The URL `redis://<host>:<port>` of each master. */
  readonly urls: readonly string[];
  /** The same URLs separated by commas, for `SLUICE_REDIS_URL`. */
  readonly url: string;
  /** The initial masters, followed by their replicas in the same order. */
  readonly nodes: readonly RedisServer[];
  /** Stops the nodes and removes their folders. Can be called twice. */
  readonly stop: () => Promise<void>;
};

export function clusterUrls(ports: readonly number[], host = '127.0.0.1'): string[] {
  return ports.map(port => `redis://${host}:${port}`);
}

/** Returns the additional arguments for a cluster node. The bus uses a port that was free. */
export function clusterArguments(busPort: number): string[] {
  return ['--cluster-enabled', 'yes', '--cluster-port', `${busPort}`, '--cluster-node-timeout', '2000'];
}

/** Returns the additional arguments for a node that announces a different address than loopback. */
function reachableArguments(host: string): string[] {
  if (host === '127.0.0.1') return [];
  return ['--bind', '127.0.0.1', host, '--protected-mode', 'no', '--cluster-announce-ip', host];
}

/**
 * Forms a cluster of empty nodes on loopback. Each node receives an equal, consecutive range of slots. Uses one CLUSTER
 * MEET for each node.
 * @throws if the nodes do not agree within 30 s
 */
export async function formCluster(nodes: readonly ClusterNode[]): Promise<void> {
  const [first, ...others] = nodes;
  if (first === undefined) throw new Error('a Redis Cluster requires a node');
  for (const [index, node] of nodes.entries()) {
    const start = Math.floor((SLOTS * index) / nodes.length);
    const end = Math.floor((SLOTS * (index + 1)) / nodes.length) - 1;
    // Different epochs from the start prevent the nodes from resolving collisions in their first seconds.
    await redisCommand(node.port, 'CLUSTER', 'SET-CONFIG-EPOCH', index + 1);
    await redisCommand(node.port, 'CLUSTER', 'ADDSLOTSRANGE', start, end);
  }
  for (const { port, busPort } of others) {
    await redisCommand(first.port, 'CLUSTER', 'MEET', '127.0.0.1', port, busPort);
  }
  const deadline = performance.now() + FORM_DEADLINE_MS;
  for (const { port } of nodes) {
    while (!(await knowsAll(port, nodes.length))) {
      if (performance.now() > deadline) throw new Error(`the Redis Cluster did not form: ${await clusterInfo(port)}`);
      await delay(50);
    }
  }
}

async function clusterInfo(port: number): Promise<string> {
  return String(await redisCommand(port, 'CLUSTER', 'INFO'));
}

async function knowsAll(port: number, size: number): Promise<boolean> {
  const lines = (await clusterInfo(port)).split('\r\n');
  return lines.includes('cluster_state:ok') && lines.includes(`cluster_size:${size}`);
}

/** Assigns one of the empty nodes to each master as a replica and waits until it has received the data. */
async function addReplicas(masters: readonly RedisServer[], nodes: readonly ClusterNode[]): Promise<void> {
  const first = masters[0] as RedisServer;
  for (const { port, busPort } of nodes) await redisCommand(first.port, 'CLUSTER', 'MEET', '127.0.0.1', port, busPort);
  for (const [index, { port }] of nodes.entries()) {
    const id = String(await redisCommand(masters[index]?.port as number, 'CLUSTER', 'MYID'));
    await repeatUntil(async () => (await redisCommand(port, 'CLUSTER', 'REPLICATE', id)) === 'OK');
    await repeatUntil(async () => hasItsData(port));
  }
}

/** Returns whether a node is a replica that has received the data of its master. */
export async function hasItsData(port: number): Promise<boolean> {
  return String(await redisCommand(port, 'INFO', 'replication')).includes('master_link_status:up');
}

/** Repeats the call until it returns true. Rejections are treated as false, until 30 s have passed. */
async function repeatUntil(holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + FORM_DEADLINE_MS;
  for (;;) {
    try {
      if (await holds()) return;
    } catch (error) {
      if (performance.now() > deadline) throw error;
    }
    if (performance.now() > deadline) throw new Error('the Redis Cluster did not form');
    await delay(50);
  }
}

/**
 * Starts a Redis Cluster of three masters on free ports.
 * @param options.redis options of each node
 * @param options.replicas gives each master a replica
 * @param options.host address of this machine, in addition to loopback
 * @param options.users creates the users of Sluice, with these additional rules
 * @throws like `startRedis`
 */
export async function startRedisCluster(
  options: {
    readonly host?: string;
    readonly users?: readonly string[];
    readonly redis?: Omit<RedisOptions, 'extra' | 'users'>;
    readonly replicas?: boolean;
  } = {},
): Promise<RedisCluster> {
  const { host = '127.0.0.1', users, replicas = false } = options;
  const nodes: RedisServer[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(nodes.map(node => node.stop()));
  };
  try {
    const introductions: ClusterNode[] = [];
    for (let index = 0; index < (replicas ? 6 : 3); index++) {
      const busPort = await freePort();
      const node = await startRedis({
        ...options.redis,
        ...(users && { users }),
        extra: [...clusterArguments(busPort), ...reachableArguments(host)],
      });
      nodes.push(node);
      introductions.push({ port: node.port, busPort });
    }
    await formCluster(introductions.slice(0, 3));
    await addReplicas(nodes.slice(0, 3), introductions.slice(3));
  } catch (error) {
    await stop();
    throw error;
  }
  const urls = clusterUrls(
    nodes.map(({ port }) => port),
    host,
  );
  return { urls, url: urls.join(','), nodes, stop };
}

/** Returns the initial master of a slot. */
export function masterOfSlot({ nodes }: RedisCluster, slot: number): RedisServer {
  return nodes[Math.floor((slot * 3 + 2) / SLOTS)] as RedisServer;
}

/** Begins to move a slot, so that the first node redirects requests for missing keys to the other one. */
export async function moveSlot(slot: number, from: RedisServer, to: RedisServer): Promise<void> {
  const [fromId, toId] = await Promise.all([from, to].map(node => node.command('CLUSTER', 'MYID')));
  await to.command('CLUSTER', 'SETSLOT', slot, 'IMPORTING', String(fromId));
  await from.command('CLUSTER', 'SETSLOT', slot, 'MIGRATING', String(toId));
}
