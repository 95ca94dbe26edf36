import { setTimeout as delay } from 'node:timers/promises';
import type { ClusterMember, ClusterWorld } from './cluster-world.ts';

const PAUSE_MS = 2_000;
const MIGRATE_MS = 5_000;

/**
 * Kills the master of the part or stops it until its slots are served by another node. Then brings it back as a
 * replica. Disconnects its replica first. Since the replica reconnects within a second, the last writes of the master
 * are often lost.
 */
async function failOver(world: ClusterWorld): Promise<void> {
  const { random, hit, findMaster, untilReplaced, untilRepaired } = world;
  const { node } = await findMaster();
  const kills = random() < 0.5;
  await hit({ name: `failover, ${kills ? 'killed' : 'stopped'} master`, losesResults: true }, async () => {
    await node.command('CLIENT', 'KILL', 'TYPE', 'replica');
    await delay(900 * random());
    await node.kill(kills ? 'SIGKILL' : 'SIGSTOP');
    await untilReplaced(node);
    if (kills) await node.restart();
    else await node.kill('SIGCONT');
    await untilRepaired();
  });
  await delay(PAUSE_MS * random());
}

/** Returns another master, including its name in the Cluster. */
async function findOther({ nodes }: ClusterWorld, { node }: ClusterMember): Promise<ClusterMember> {
  for (const each of nodes) {
    const isMaster = String(await each.command('ROLE')).startsWith('master');
    if (isMaster && each !== node) return { node: each, id: String(await each.command('CLUSTER', 'MYID')) };
  }
  throw new Error('the Redis Cluster has no other master');
}

/** Moves the slot of the part to another master, key by key, as redis-cli does it. */
async function moveSlot(world: ClusterWorld): Promise<void> {
  const { slot, nodes, hit, random, findMaster } = world;
  const from = await findMaster();
  const to = await findOther(world, from);
  await hit({ name: 'resharding', losesResults: true }, async () => {
    await to.node.command('CLUSTER', 'SETSLOT', slot, 'IMPORTING', from.id);
    await from.node.command('CLUSTER', 'SETSLOT', slot, 'MIGRATING', to.id);
    for (;;) {
      const keys = (await from.node.command('CLUSTER', 'GETKEYSINSLOT', slot, 1)) as string[];
      if (keys.length === 0) break;
      await from.node.command('MIGRATE', '127.0.0.1', to.node.port, '', 0, MIGRATE_MS, 'KEYS', ...keys);
      await delay(40 * random());
    }
    for (const node of [to.node, from.node, ...nodes]) {
      const isMaster = String(await node.command('ROLE')).startsWith('master');
      if (isMaster) await node.command('CLUSTER', 'SETSLOT', slot, 'NODE', to.id);
    }
  });
  await delay(PAUSE_MS * random());
}

/** Faults for a Redis Cluster. */
export const CLUSTER_FAULTS = { failover: failOver, reshard: moveSlot } as const;
export type ClusterFault = keyof typeof CLUSTER_FAULTS;
