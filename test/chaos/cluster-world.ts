import { Cluster } from 'ioredis';
import { partKeys } from '../../src/part/keys.ts';
import { keySlot } from '../../src/redis/key-slot.ts';
import { hasItsData, startRedisCluster } from '../support/redis/cluster.ts';
import type { RedisOptions, RedisServer } from '../support/redis/server.ts';
import { type Flow, READER, startFlow, startOrEnd, until } from './world.ts';

/** The maximum duration of a failover and its repair. The nodes notice a dead master after two seconds. */
const REPAIR_MS = 30_000;

/** A data plane with a Redis Cluster, in which each master has a replica that confirms its writes. */
export interface ClusterWorld extends Flow {
  /** The slot of the part to which all events belong. */
  readonly slot: number;
  readonly nodes: readonly RedisServer[];
  /** Returns the node that serves the slot, as seen by the other nodes. `id`: its name in the Cluster. */
  readonly findMaster: () => Promise<ClusterMember>;
  /** Waits until the slot is served by another node. */
  readonly untilReplaced: (former: RedisServer) => Promise<void>;
  /** Waits until all nodes respond, and all replicas have the data of their masters. */
  readonly untilRepaired: () => Promise<void>;
}

export interface ClusterMember {
  readonly node: RedisServer;
  readonly id: string;
}

type SlotRange = [from: number, to: number, master: [host: string, port: number, id: string]];

export function startClusterWorld(
  random: () => number,
  options: Pick<RedisOptions, 'onDisk'> = {},
): Promise<ClusterWorld> {
  return startOrEnd(async ends => {
    const redis = { ...options, appendonly: true, appendfsync: 'always' } as const;
    const { nodes, urls, url, stop } = await startRedisCluster({ redis, replicas: true });
    ends.push(stop);
    const connectReader = () => new Cluster([...urls], { redisOptions: READER, slotsRefreshInterval: 500 });
    const env = { SLUICE_REDIS_WAIT_REPLICAS: '1' };
    const flow = await startFlow({ url, rolesUrl: url, connectReader, env }, random, ends);
    const slot = keySlot(partKeys(flow.state.part).meta);

    /** The most recent response is used because a node that was unavailable may return an outdated one. */
    async function findMaster(asked = nodes): Promise<ClusterMember> {
      for (const each of asked) {
        const ranges = (await each.command('CLUSTER', 'SLOTS').catch(() => [])) as SlotRange[];
        const [, , [, port, id] = []] = ranges.find(([from, to]) => from <= slot && slot <= to) ?? [];
        const node = nodes.find(known => known.port === port);
        if (node !== undefined && id !== undefined) return { node, id };
      }
      throw new Error('no node of the Redis Cluster knows the master of the slot');
    }

    async function untilReplaced(former: RedisServer): Promise<void> {
      const others = nodes.filter(node => node !== former);
      const isReplaced = async () => (await findMaster(others)).node !== former;
      if (!(await until(REPAIR_MS, isReplaced))) throw new Error('no replica became a master');
    }

    async function isRepaired(): Promise<boolean> {
      const states = await Promise.all(
        nodes.map(async node => {
          const info = String(await node.command('INFO', 'replication').catch(() => ''));
          return info.includes('role:master')
            ? !info.includes('connected_slaves:0')
            : hasItsData(node.port).catch(() => false);
        }),
      );
      return states.every(Boolean);
    }

    async function untilRepaired(): Promise<void> {
      if (!(await until(REPAIR_MS, isRepaired))) throw new Error('the Redis Cluster did not recover');
    }
    return { ...flow, slot, nodes, findMaster: () => findMaster(), untilReplaced, untilRepaired };
  });
}
