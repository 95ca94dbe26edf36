import { expect, it } from 'vitest';
import { publicId, tenantId } from '../../../src/core/ids/ids.ts';
import { partKeys } from '../../../src/part/keys.ts';
import { accountKeys, CLUSTER_KEYS, integrationKeys, queueKeys, tenantKeys } from '../../../src/redis/keys.ts';
import { untilCalm, writesOf } from '../support/calm.ts';
import { eventually } from '../support/deadline.ts';
import { makeSample } from '../support/publisher.ts';
import { PRODUCER, QUEUE, SUBSCRIPTION } from '../support/small-world.ts';
import { useSmallWorld } from '../support/use-small-world.ts';
import { kubectl } from '../support/world.ts';

/**
 * The maximum time for repairing damage. It is repaired by the next audit, which ends within 65 s if the machine is not
 * busy.
 */
const REPAIRED_WITHIN_MS = 200_000;

/** The pause between two looks at the control state. Each of them sends 30 commands on connections of their own. */
const EVERY_MS = 1_000;

const TENANT = tenantId(PRODUCER);
const KEYS = {
  t: tenantKeys(TENANT),
  q: queueKeys(TENANT, QUEUE),
  ada: integrationKeys(publicId('Integration', PRODUCER, 'ada')),
  bob: integrationKeys(publicId('Integration', PRODUCER, 'bob')),
  account: accountKeys(publicId('Account', '', PRODUCER)),
};
const ADA = publicId('Integration', PRODUCER, 'ada');
const SUB = { ada: publicId('Subscription', 'ada', SUBSCRIPTION), bob: publicId('Subscription', 'bob', SUBSCRIPTION) };

const world = useSmallWorld({ partners: ['ada', 'bob'], groupKeys: ['red', 'green'] });

const redis = (...command: [string, ...(string | number)[]]) => world.redis.command(...command);

/** Returns the fields of a hash written by the controller, without timestamps. */
async function controlled(key: string): Promise<string[]> {
  const flat = (await redis('HGETALL', key)) as string[];
  const kept =
    /^(state|gen|cfgv|retentionMs|maxBytes|ready|inc|tenant|queue|route|send|cap|endpoint|payer|plan|included|[qis]:.*|[0-9a-f]{64}|int_.*)$/;
  return flat.flatMap((field, i) => (i % 2 === 0 && kept.test(field) ? [`${field}=${flat[i + 1]}`] : [])).toSorted();
}

const NAME = `${TENANT}:${QUEUE}:0`;

/** Returns the keys of the stream's part. */
async function readPartKeys() {
  const part = { tenant: TENANT, queue: QUEUE, number: 0 };
  const gen = (await redis('HGET', CLUSTER_KEYS.parts, NAME)) as string | null;
  return partKeys({ ...part, gen: gen ?? '' });
}

/** Returns the control state of the stream's part without timestamps, and the names of its slots. */
async function dumpPart(): Promise<Record<string, unknown>> {
  const { meta, keys, subs, endpoints } = await readPartKeys();
  const hash = async (key: string) => {
    const flat = (await redis('HGETALL', key)) as string[];
    return flat
      .flatMap((field, i) => (i % 2 === 0 ? [[field, flat[i + 1] as string] as const] : []))
      .toSorted(([a], [b]) => (a < b ? -1 : 1));
  };
  const lists = await hash(keys);
  return {
    [meta]: await controlled(meta),
    [keys]: lists.map(([groupKey, list]) => [
      groupKey,
      list
        .match(/.{23}/g)
        ?.map(entry => entry.slice(0, 8))
        .toSorted(),
    ]),
    [subs]: await hash(subs),
    [endpoints]: await hash(endpoints),
    parts: await redis('HGET', CLUSTER_KEYS.parts, NAME),
  };
}

/** Returns the producer's control state. */
async function dump(): Promise<Record<string, unknown>> {
  const { t, q, ada, bob, account } = KEYS;
  const hashes = [t.meta, t.keys, t.index, t.subs(QUEUE), q.meta, account.meta];
  for (const [name, i] of Object.entries({ ada, bob })) hashes.push(i.meta, i.sub(SUB[name as 'ada']));
  const entries = await Promise.all(hashes.map(async key => [key, await controlled(key)] as const));
  return {
    ...Object.fromEntries(entries),
    listed: await redis('SISMEMBER', CLUSTER_KEYS.tenants, TENANT),
    ada: ((await redis('HKEYS', ada.act)) as string[]).toSorted(),
    bob: ((await redis('HKEYS', bob.act)) as string[]).toSorted(),
    ...(await dumpPart()),
  };
}

const passes = () => world.sluice.metric('sluice_controller_drift_pass_duration_seconds_count');

/** Waits until this number of audits have started and been completed. */
async function waitForPasses(count: number): Promise<void> {
  const before = await passes();
  await eventually('the audits are completed', async () => (await passes()) > before + count, {
    withinMs: (count + 1) * REPAIRED_WITHIN_MS,
    everyMs: EVERY_MS,
  });
}

async function isDelivered(id: string, groupKey: string, partners: readonly string[]): Promise<void> {
  const publisher = world.publisherOf(world.sluice);
  await publisher.publish(makeSample(id, groupKey, id));
  for (const partner of partners) {
    await world.receiver.arrival(id, partner);
  }
}

it('reads all of Redis without writing anything if there is no damage', async () => {
  await isDelivered('first', 'red', ['ada', 'bob']);
  const changes = () => writesOf(world.redis);
  await untilCalm(changes);
  const [before, state] = [await changes(), await dump()];
  await waitForPasses(1);
  expect(await changes()).toBe(before);
  expect(await dump()).toEqual(state);
  expect(await world.sluice.metric('sluice_controller_drift_repaired_total')).toBe(0);
});

type Damage = readonly [what: string, ...commands: [string, ...(string | number)[]][]];

/** Manual changes of different kinds. No event uses the changed data in the meantime. */
const DAMAGE: readonly Damage[] = [
  ['activation', ['HDEL', KEYS.ada.act, 'green'], ['HSET', KEYS.ada.act, 'black', 5]],
  ['subscription', ['HSET', KEYS.ada.sub(SUB.ada), 'route', 'closed']],
  ['integration', ['HSET', KEYS.bob.meta, 'state', 'closed']],
  ['ready', ['HDEL', KEYS.bob.meta, 'ready']],
  ['subscribers', ['HDEL', KEYS.t.subs(QUEUE), ADA]],
  ['queue', ['HSET', KEYS.q.meta, 'state', 'closing', 'retentionMs', 5]],
  ['keys', ['DEL', KEYS.t.keys]],
  ['tenant', ['HSET', KEYS.t.meta, 'payer', 'acc_x', 'plan', 'Free']],
  ['index', ['DEL', KEYS.t.index]],
  ['membership', ['SREM', CLUSTER_KEYS.tenants, TENANT]],
  ['account', ['HSET', KEYS.account.meta, 'plan', 'Free', 'included', 5]],
];

it.each([
  ['of every kind at once', DAMAGE],
  ['of single activations only', DAMAGE.slice(0, 1)],
])('repairs damage %s during the next audit, and reports it with an Event', async (_what, damages) => {
  const before = await dump();
  const counted = async (what: string) => world.sluice.metric('sluice_controller_drift_repaired_total', { what });
  const counts = await Promise.all(damages.map(([what]) => counted(what)));
  const passesBefore = await passes();
  for (const [, ...commands] of damages) for (const command of commands) await redis(...command);
  const damaged = await dump();
  for (const key of Object.keys(before)) if (damages === DAMAGE) expect([key, damaged]).not.toEqual([key, before]);
  const { tookMs } = await eventually(
    'the control state is repaired',
    async () => JSON.stringify(await dump()) === JSON.stringify(before),
    { withinMs: REPAIRED_WITHIN_MS, everyMs: EVERY_MS },
  );
  console.log(`${damages.length} kinds of damage: repaired after ${Math.round(tookMs)} ms`);
  // An audit in progress may already have checked this data before it was damaged.
  expect((await passes()) - passesBefore).toBeLessThanOrEqual(2);
  for (const [at, [what]] of damages.entries()) {
    await eventually(`${what} is counted`, async () => (await counted(what)) > (counts[at] as number));
  }
  await world.observer.untilEvent(`Workspace/${PRODUCER} DriftRepaired`);
  for (const groupKey of ['red', 'green']) await isDelivered(`${damages.length}.${groupKey}`, groupKey, ['ada', 'bob']);
});

it('repairs all kinds of damage of a part and of the list of parts', async () => {
  const before = await dump();
  const { meta, keys, subs, endpoints } = await readPartKeys();
  const kinds = ['part', 'part-row', 'part-endpoint', 'part-activation'];
  const counted = (what: string) => world.sluice.metric('sluice_controller_drift_repaired_total', { what });
  const counts = await Promise.all(kinds.map(counted));
  const [slot = ''] = (await redis('HKEYS', subs)) as string[];
  await redis('HSET', meta, 'state', 'closing', 'retentionMs', 5);
  await redis('HSET', subs, slot, 'x');
  await redis('DEL', endpoints);
  await redis('HDEL', keys, 'red');
  await redis('HSET', keys, 'black', `${slot}${'0'.repeat(15)}`);
  const isWhole = async () => JSON.stringify(await dump()) === JSON.stringify(before);
  const repaired = { withinMs: REPAIRED_WITHIN_MS, everyMs: EVERY_MS };
  await eventually('the control state is repaired', isWhole, repaired);
  for (const [at, what] of kinds.entries()) {
    await eventually(`${what} is counted`, async () => (await counted(what)) > (counts[at] as number));
  }
  // The part's dispatcher may detect this before the audit.
  await redis('HDEL', CLUSTER_KEYS.parts, NAME);
  await eventually('the part is listed again', isWhole, repaired);
  for (const groupKey of ['red', 'green']) await isDelivered(`part.${groupKey}`, groupKey, ['ada', 'bob']);
});

it('repairs the loss of a whole slot even if no event uses it', async () => {
  const before = await dump();
  const lost = [KEYS.bob.meta, KEYS.bob.act, KEYS.bob.sub(SUB.bob)];
  for (const key of lost) await redis('DEL', key);
  await eventually('the slot is repaired', async () => JSON.stringify(await dump()) === JSON.stringify(before), {
    withinMs: REPAIRED_WITHIN_MS,
    everyMs: EVERY_MS,
  });
  await isDelivered('after-the-slot', 'green', ['ada', 'bob']);
});

it('removes data of objects that were deleted while no process was leading, and nothing else', async () => {
  await isDelivered('before-the-sweep', 'red', ['ada', 'bob']);
  await world.sluice.stop();
  const letGo = ['--type=merge', '-p', '{"metadata":{"finalizers":null}}'];
  for (const [object, namespace] of [
    [`subscription/${SUBSCRIPTION}`, 'bob'],
    [`catalogstream/${QUEUE}`, PRODUCER],
  ] as const) {
    await kubectl(world.cluster, ['delete', object, '-n', namespace, '--wait=false']);
    await kubectl(world.cluster, ['patch', object, '-n', namespace, ...letGo]);
  }
  await world.sluice.restart();
  await eventually('the queue is closed', async () => (await redis('HGET', KEYS.q.meta, 'state')) === 'closing');
  // Ada's inbox is stored with the stream, and can be read until the end of the retention period.
  await waitForPasses(2);
  const { meta, log } = await readPartKeys();
  expect([await redis('HGET', meta, 'state'), await redis('EXISTS', log)]).toEqual(['closing', 1]);
  expect(await world.sluice.metric('sluice_controller_swept_total')).toBe(0);
  expect(await world.sluice.metric('sluice_controller_drift_repaired_total')).toBe(0);
});
