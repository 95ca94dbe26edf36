import { createDrain } from '../../../src/part/sweep/drain.ts';
import { advanceOnce, evictDead, exchangeOnce, readPushes, reclaim } from './play.ts';
import { sweepOnce } from './play-gates.ts';
import { hold, same } from './reference/reference.ts';
import { KEYS, RETENTION_MS, type World } from './world.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const MOST_ROUNDS = 300;
/**
 * The keys of a part without subscriptions. An empty stream keeps its last id, reasons are counted for eight days, and
 * responses for replays expire.
 */
const REMAINS = ['keys', 'log', 'meta', 'ready', 'rpl', 'why'];

async function until(what: string, isDone: () => Promise<boolean>): Promise<void> {
  for (let round = 0; !(await isDone()); round++) hold(round < MOST_ROUNDS, () => `${what} does not end`);
}

/** Opens all gates. */
async function openAll(world: World): Promise<void> {
  const { of } = world;
  const slots = [...world.incs.keys()].map(world.slot);
  const meta = { ready: '1', state: 'open', maxBytes: String(2 ** 40), granted: '' } as const;
  await world.gate(
    { kind: 'marker' },
    ...Object.entries(meta).map(([field, value]) => ({ kind: 'meta' as const, field: field as 'ready', value })),
    ...slots.map(slot => ({ kind: 'endpoint' as const, slot, sealed: 's' })),
    ...slots.flatMap(slot => KEYS.map(groupKey => ({ kind: 'on' as const, slot, groupKey }))),
  );
  await world.check(await world.takePushes());
  for (const slot of slots) {
    const { maxPerSecond: _, ...row } = of.subs.get(slot) ?? world.rowOf(world.nameOf.get(slot) as string);
    const open = { ...row, route: 'open', send: 'open', enabledMs: world.t.clock.ms } as const;
    await world.gate({ kind: 'row', slot, row: open });
  }
  await world.check(await world.takePushes());
}

/** Delivers all events, without any more failed dispatchers or lost data. */
async function deliverAll(world: World): Promise<void> {
  const { of, processes } = world;
  const isOpen = () => [...of.open.values()].some(({ slot }) => of.subs.has(slot));
  await until('catching up', async () => !(await advanceOnce(world)));
  world.wait(1_000);
  await until('delivering', async () => {
    for (const process of processes) {
      readPushes(process);
      await reclaim(world, process);
      for (const { lane, ref } of process.held.values()) {
        process.ended.push({ lane, ref, outcome: 'delivered', reason: '200', latencyMs: 1 });
      }
      process.held.clear();
      await exchangeOnce(world, process, 64, 1_000, { isPushed: false });
    }
    await evictDead(world);
    world.wait(1_000);
    return !isOpen() && of.claims.size === 0;
  });
  const dump = await world.dump();
  for (const [slot, waiting] of dump.counts) {
    if (of.subs.has(slot)) same(`in flight of ${slot}`, waiting.split(' ')[0], '0');
  }
}

/** Removes all data that does not belong to a subscription. */
async function deleteAll(world: World): Promise<void> {
  const { t, redis } = world;
  for (const slot of [...world.incs.keys()].map(world.slot)) {
    await world.gate({ kind: 'drop', slot }, ...KEYS.map(groupKey => ({ kind: 'off' as const, slot, groupKey })));
  }
  await world.check(await world.takePushes());
  for (const ms of [RETENTION_MS + 1, 7 * HOUR_MS, 26 * HOUR_MS, 32 * DAY_MS]) {
    world.wait(ms);
    await until('sweeping', async () => !(await sweepOnce(world)));
  }
  const tag = t.keys.meta.slice(0, t.keys.meta.indexOf('}') + 1);
  const left = async () => {
    const names = (await redis.call('keys', `${tag.replace(/[[\]*?\\]/g, '?')}*`)) as string[];
    return names.map(name => name.slice(tag.length + 1).split(':')[0] as string).sort();
  };
  same(
    'keys that are left',
    (await left()).filter(key => !REMAINS.includes(key)),
    [],
  );
  same('bytes of an empty part', Number((await world.dump()).meta.get('bytes')), 0);
  await createDrain(t.client).remove(t.part, 1, t.clock.ms);
  same(
    'keys that are left of a part that was removed',
    (await left()).filter(key => key !== 'rpl'),
    ['meta'],
  );
}

/** Waits until a part is idle, and then removes everything. */
export async function comeToRest(world: World): Promise<void> {
  // Attempts that ended before their endpoints were enabled are no longer counted.
  for (const process of world.processes) await exchangeOnce(world, process, 0, 1_000, { isPushed: false });
  world.wait(1);
  await openAll(world);
  await deliverAll(world);
  await deleteAll(world);
}
