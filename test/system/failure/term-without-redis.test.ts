import { afterAll, beforeAll, expect, it } from 'vitest';
import { NAMESPACES, resourceOf } from '../../../src/kube/resource.ts';
import { CLUSTER_KEYS } from '../../../src/redis/keys.ts';
import type { Sluice } from '../../support/sluice.ts';
import { eventually } from '../support/deadline.ts';
import { type Installation, install } from '../support/installation.ts';
import { list } from '../support/listed.ts';
import { PRODUCER, QUEUE, type Running, settle } from '../support/small-world.ts';
import { apply, conditionOf, kubectl, stream, tenant, waitForAll } from '../support/world.ts';

let installed: Installation;
let leader: Sluice;
let standby: Sluice;
let world: Running;

beforeAll(async () => {
  installed = await install({ controllerManager: true });
  leader = await installed.start({ role: 'controller' });
  world = await settle(installed, { partners: ['ada'], groupKeys: ['key'] });
  standby = await installed.start({ role: 'controller' });
});

afterAll(async () => {
  await world?.close();
  await installed?.stop();
});

/** Deletes workspaces including their namespaces and waits until they have been deleted. */
async function deleteTenants(...names: string[]): Promise<void> {
  const { cluster } = installed;
  await kubectl(cluster, ['delete', 'namespace', ...names, '--wait=false']);
  await kubectl(cluster, ['delete', 'workspace', ...names, '--wait=false']);
  const left = async () =>
    (await list(cluster, [NAMESPACES, resourceOf('Workspace')])).filter(({ metadata }) =>
      names.includes(metadata.name),
    );
  const { tookMs } = await eventually('the namespaces are deleted', async () => (await left()).length === 0, {
    withinMs: 260_000,
    everyMs: 1_000,
  });
  console.log(`${names.join(', ')}: deleted after ${Math.round(tookMs)} ms`);
}

it('a leader without Redis allows namespaces to be deleted, and reports that it is blocked', async () => {
  await installed.redis.kill('SIGKILL');
  await leader.kill('SIGKILL');
  await deleteTenants(PRODUCER, 'ada');
  await world.observer.untilEvent(`Workspace/${PRODUCER} FinalizerRemovedWithoutRedis`);
  expect(await standby.metric('sluice_controller_term_started')).toBe(0);
  await eventually(
    'the replica is impaired',
    async () => (await standby.readyz())[1].includes('holds the Lease but cannot start its work'),
    { withinMs: 90_000, everyMs: 500 },
  );
  await world.observer.untilEvent('Lease/sluice-controller TermNotStarted', 90_000);
});

it('the leader continues when Redis is available again', async () => {
  await installed.redis.restart();
  await apply(installed.cluster, [...tenant('late'), stream('late', QUEUE)]);
  await waitForAll(installed.cluster, 'catalogstream', 'late');
  expect(await standby.metric('sluice_controller_term_started')).toBe(1);
  const isWhole = async () => {
    const [status, body] = await standby.readyz();
    return status !== 0 && !body.includes('holds the Lease but cannot start its work');
  };
  await eventually('the replica is no longer impaired', isWhole);
});

it('a leader with the Redis of another cluster allows namespaces to be deleted, and does not write to this Redis', async () => {
  const { cluster, redis } = installed;
  await standby.stop();
  await redis.command('HSET', CLUSTER_KEYS.meta, 'uid', 'theirs');
  const before = await redis.command('HGETALL', CLUSTER_KEYS.meta);
  const foreign = await installed.start({ role: 'controller', unready: true });
  await eventually('the controller reports this', async () => (await foreign.readyz())[1].includes('cluster theirs'), {
    withinMs: 90_000,
    everyMs: 200,
  });
  await eventually(
    'the objects show this',
    async () => {
      await apply(cluster, [stream('late', 'more')]);
      return (await conditionOf(cluster, 'catalogstream/more', 'late')) === 'False/RedisUnavailable';
    },
    { withinMs: 90_000, everyMs: 1_000 },
  );
  await deleteTenants('late');
  expect(await redis.command('HGETALL', CLUSTER_KEYS.meta)).toEqual(before);
  await foreign.stop();
});

it('a controller reports that its Lease namespace is missing, and leads when the namespace exists', async () => {
  await installed.redis.command('FLUSHALL');
  // This belongs to an installation with another Redis because the previous Redis has lost its data.
  await kubectl(installed.cluster, ['delete', 'lease', 'sluice-controller', '--namespace=sluice-system']);
  const lost = await installed.start({
    role: 'controller',
    unready: true,
    env: { SLUICE_NAMESPACE: 'elsewhere' },
  });
  await eventually(
    'the controller reports this',
    async () => (await lost.readyz())[1].includes('namespace elsewhere does not exist'),
    {
      withinMs: 90_000,
      everyMs: 200,
    },
  );
  expect((await lost.readyz())[0]).toBe(503);
  await kubectl(installed.cluster, ['create', 'namespace', 'elsewhere']);
  await eventually('the controller leads', async () => (await lost.metric('sluice_controller_term_started')) === 1, {
    withinMs: 90_000,
    everyMs: 200,
  });
  const isReady = async () => (await lost.readyz())[0] === 200;
  await eventually('it is ready', isReady);
});
