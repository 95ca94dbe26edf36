import { beforeEach, describe, expect, test } from 'vitest';
import { createAuditedTenant } from '../../../test/support/controller/audited-tenant.ts';
import { createAdvance } from '../../part/catchup/advance.ts';
import { type Part, partKeys, slotOf } from '../../part/keys.ts';
import { createIngest } from '../../part/log/ingest.ts';
import type { RedisClient } from '../../redis/client.ts';
import { CLUSTER_KEYS, integrationKeys, queueKeys, tenantKeys } from '../../redis/keys.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';

/** Commands and scripts that only read. */
const READS = new Set(['hashes', 'probe', 'smembers', 'hscan', 'zscan', 'hgetall', 'hmget', 'read-page']);
/** Fields of meta that are not the controller's. */
const PROGRESS = new Set([
  'fence',
  'version',
  'granted',
  'ledger',
  'base',
  'used',
  'bytes',
  'tail',
  'in',
  'out',
  'ids',
]);

const OTHER = '0'.repeat(8);
const SINCE = '0'.repeat(15);
/** An activation; when it began follows from the history. */
const ENTRY = /([0-9a-v]{8})[0-9a-f]{15}/g;

async function open(redis: RedisClient) {
  const t = await createAuditedTenant(redis, { parts: true });
  // Scripts take the time of Redis. Group keys have been open for some time.
  t.clock.ms = Date.now() - 60_000;
  await t.begin(['red', 'green', 'blue']);
  const { meta } = partKeys({ tenant: t.tenant, queue: 'orders', gen: '', number: 0 });
  const gen = (await redis.call('hget', meta, 'gen')) as string;
  const part: Part = { tenant: t.tenant, queue: 'orders', gen, number: 0 };
  const inc = (await redis.call('hget', integrationKeys(t.integration).sub(t.sub), 'inc')) as string;
  const k = partKeys(part);
  const ingest = createIngest(redis);
  const advance = createAdvance(redis);
  return {
    t,
    part,
    k,
    name: `${t.tenant}:orders:0`,
    slot: slotOf(t.sub, inc),
    async editRow(run: RedisClient['call'], edit: (row: string) => string) {
      const slot = slotOf(t.sub, inc);
      await run('hset', k.subs, slot, edit((await run('hget', k.subs, slot)) as string));
    },
    /** What the controller wants of the part, and of the list of parts. */
    async dump() {
      const hash = async (key: string) => redis.readHash(key);
      const fields = Object.entries(await hash(k.meta)).filter(([field]) => !PROGRESS.has(field));
      const lists = Object.entries(await hash(k.keys)).map(([groupKey, list]) => [
        groupKey,
        list.replaceAll(ENTRY, '$1'),
      ]);
      return {
        listed: await redis.call('hget', CLUSTER_KEYS.parts, `${t.tenant}:orders:0`),
        meta: Object.fromEntries(fields),
        keys: Object.fromEntries(lists),
        rows: await hash(k.subs),
        endpoints: await hash(k.endpoints),
      };
    },
    async send(...groupKeys: string[]) {
      const cfgv = (await redis.call('hget', k.meta, 'cfgv')) as string;
      const events = groupKeys.map(groupKey => ({ groupKey, meta: '{}', body: Buffer.from('body') }));
      return (await ingest(part, cfgv, events)).answer;
    },
    /** Routes on, whatever its account has left. */
    async advanceAll() {
      await redis.call('hdel', k.meta, 'granted');
      for (;;) {
        const answer = await advance(part);
        if (answer.answer !== 'OK' || !answer.more) return answer;
      }
    },
    /** References that were routed to the subscription. */
    async routed() {
      const text = (await redis.call('hget', k.counts, slotOf(t.sub, inc))) as string | null;
      return Number((text ?? '0 0').split(' ')[1]);
    },
  };
}

type World = Awaited<ReturnType<typeof open>>;

/** What somebody does to Redis by hand, and what the audit calls it. */
const DAMAGE: readonly [string, string, (w: World, run: RedisClient['call']) => Promise<unknown>][] = [
  ['the part is not listed', 'part-list', (w, run) => run('hdel', CLUSTER_KEYS.parts, w.name)],
  ['it is listed with another generation', 'part-list', (w, run) => run('hset', CLUSTER_KEYS.parts, w.name, 'x')],
  ...['cfgv', 'state', 'maxBytes', 'retentionMs', 'source', 'eventTypes', 'contextHeaders', 'payer', 'plan'].flatMap(
    (field): typeof DAMAGE => [
      [`${field} is another`, 'part', (w, run) => run('hset', w.k.meta, field, '7')],
      [`${field} goes`, 'part', (w, run) => run('hdel', w.k.meta, field)],
    ],
  ),
  ['the part is not ready', 'part', (w, run) => run('hdel', w.k.meta, 'ready')],
  ['the generation is another', 'part', (w, run) => run('hset', w.k.meta, 'gen', 'x')],
  ['the generation goes', 'part', (w, run) => run('hdel', w.k.meta, 'gen')],
  ['it was removed', 'part', (w, run) => run('hset', w.k.meta, 'gen', '-', 'was', 'x')],
  ['another one was not wholly removed', 'part', (w, run) => run('hset', w.k.meta, 'was', 'x')],
  ['it was removed and began again', 'part', (w, run) => run('hset', w.k.meta, 'was', w.part.gen)],
  ['meta goes', 'part', (w, run) => run('del', w.k.meta)],
  ['the marker goes', 'part', (w, run) => run('hdel', w.k.keys, '')],
  ['all activations go', 'part-activation', (w, run) => run('del', w.k.keys)],
  ['an activation goes', 'part-activation', (w, run) => run('hdel', w.k.keys, 'red')],
  ['an activation comes', 'part-activation', (w, run) => run('hset', w.k.keys, 'black', w.slot + SINCE)],
  [
    'one of an unknown slot comes',
    'part-activation',
    (w, run) => run('hset', w.k.keys, 'red', w.slot + SINCE + OTHER + SINCE),
  ],
  ['an activation is garbled', 'part-activation', (w, run) => run('hset', w.k.keys, 'red', 'x')],
  [
    'an activation is there twice',
    'part-activation',
    (w, run) => run('hset', w.k.keys, 'red', (w.slot + SINCE).repeat(2)),
  ],
  ['a list says that it has more', 'part-activation', (w, run) => run('hset', w.k.keys, 'red', `${w.slot}${SINCE}002`)],
  ['a list is not announced', 'part-activation', (w, run) => run('hset', w.k.keys, 'red\x002', OTHER + SINCE)],
  ['a list has no first one', 'part-activation', (w, run) => run('hset', w.k.keys, 'black\x002', w.slot + SINCE)],
  ['a row goes', 'part-row', (w, run) => run('hdel', w.k.subs, w.slot)],
  ['a row closes', 'part-row', (w, run) => w.editRow(run, row => `c${row.slice(1)}`)],
  ['a cap is another', 'part-row', (w, run) => w.editRow(run, row => `${row.slice(0, 3)}99999${row.slice(8)}`)],
  [
    'a row begins later',
    'part-row',
    (w, run) => w.editRow(run, row => row.slice(0, 26) + 'f'.repeat(15) + row.slice(41)),
  ],
  ['a row is garbled', 'part-row', (w, run) => run('hset', w.k.subs, w.slot, 'x')],
  ['a row comes', 'part-row', (w, run) => run('hset', w.k.subs, OTHER, 'x')],
  ['all rows go', 'part-row', (w, run) => run('del', w.k.subs)],
  ['an endpoint goes', 'part-endpoint', (w, run) => run('hdel', w.k.endpoints, w.slot)],
  ['an endpoint is another', 'part-endpoint', (w, run) => run('hset', w.k.endpoints, w.slot, 'x')],
  ['an endpoint of nobody comes', 'part-endpoint', (w, run) => run('hset', w.k.endpoints, OTHER, 'x')],
];

onEachRedis(redis => {
  let w: World;
  beforeEach(async () => {
    w = await open(redis());
  });

  test('finds nothing where all is well, and writes nothing, any number of times', async () => {
    w.t.calls.length = 0;
    for (let n = 0; n < 3; n++) {
      expect(await w.t.look()).toEqual([]);
      await w.t.pass();
      await w.t.garbage.pass(new Set([w.t.tenant]));
    }
    expect(w.t.calls.filter(call => !READS.has(call))).toEqual([]);
    // One page a comparison.
    expect(w.t.calls.filter(call => call === 'read-page')).toHaveLength(9);
    expect([w.t.events, w.t.repaired, w.t.relisted]).toEqual([[], [], []]);
  });

  test.each(DAMAGE)('%s: it is found and mended', async (_what, label, damage) => {
    const before = await w.dump();
    await damage(w, redis().call);
    expect(await w.dump()).not.toEqual(before);
    w.t.calls.length = 0;
    expect((await w.t.look()).map(({ what }) => what)).toContain(label);
    expect(w.t.calls.filter(call => !READS.has(call))).toEqual([]);
    await w.t.pass();
    expect(await w.dump()).toEqual(before);
    expect(w.t.repaired).toContain(label);
    expect(w.t.events).toHaveLength(1);
    w.t.calls.length = 0;
    await w.t.pass();
    expect(w.t.calls.filter(call => !READS.has(call))).toEqual([]);
    expect(w.t.events).toHaveLength(1);
    expect(await w.send('red', 'green', 'black')).toBe('OK');
    await w.advanceAll();
    expect(await w.routed()).toBe(2);
  });

  test('what is gone at the second look was on its way', async () => {
    const listed = await w.t.listed();
    const list = (await redis().call('hget', w.k.keys, 'red')) as string;
    const source = (await redis().call('hget', w.k.meta, 'source')) as string;
    await redis().call('hdel', w.k.keys, 'red');
    await redis().call('hset', w.k.meta, 'source', 'x');
    const first = await w.t.audit.compareTenant(w.t.name, listed);
    expect(first.map(({ what }) => what).toSorted()).toEqual(['part', 'part-activation']);
    await redis().call('hset', w.k.keys, 'red', list);
    await redis().call('hset', w.k.meta, 'source', source);
    // Another difference than the first: it counts when it stays.
    await redis().call('del', w.k.endpoints);
    await w.t.audit.repair({ tenants: new Map([[w.t.name, first]]), accounts: new Map() }, listed);
    expect([w.t.queue.tenants.size, w.t.events]).toEqual([0, []]);
  });

  test('a pair that a worker has before it is not damaged', async () => {
    await redis().call('hdel', w.k.keys, 'red');
    w.t.queue.pairs.add(`${w.t.name}/ada/red`);
    expect(await w.t.look()).toEqual([]);
  });

  test('an activation that the caches have not seen yet is not removed', async () => {
    const violet = w.t.activation('violet');
    await redis().call('hset', w.k.keys, 'violet', w.slot + SINCE);
    await redis().call('hset', integrationKeys(w.t.integration).act, 'violet', 5);
    await redis().call('zadd', tenantKeys(w.t.tenant).gates, 0, `violet\0${w.t.integration}`);
    w.t.actual.pairs = [violet];
    w.t.actual.onRelist = what => {
      if (what === 'activations') w.t.put('Activation', violet);
    };
    await w.t.pass();
    expect(await redis().call('hget', w.k.keys, 'violet')).toBe(w.slot + SINCE);
    expect(w.t.events).toEqual([]);
  });

  describe('events', () => {
    test.each([
      ['the marker is lost', (run: RedisClient['call']) => run('hdel', w.k.keys, '')],
      ['all activations are lost', (run: RedisClient['call']) => run('del', w.k.keys)],
    ])('that are accepted while %s are routed when it is mended', async (_what, damage) => {
      await damage(redis().call);
      expect(await w.send('red', 'black')).toBe('OK');
      expect(await w.routed()).toBe(0);
      await w.t.pass();
      await w.advanceAll();
      expect(await w.routed()).toBe(1);
    });

    test('that were accepted before meta is lost stay, and are routed once', async () => {
      await w.send('red', 'black', 'green');
      await w.advanceAll();
      await redis().call('hset', w.k.meta, 'granted', 2);
      await w.send('red', 'blue');
      expect(await redis().call('hget', w.k.meta, 'hold')).toBe('tokens');
      expect(await w.routed()).toBe(2);
      await redis().call('del', w.k.meta);
      expect(await w.send('red')).toBe('GONE');
      await w.t.pass();
      expect((await redis().readHash(w.k.meta))['hold']).toBe('behind');
      await w.advanceAll();
      expect(await w.routed()).toBe(4);
      expect(await w.send('red')).toBe('OK');
      expect(await w.routed()).toBe(5);
    });

    test('whose senders repeat their ids are known after meta was lost', async () => {
      const event = { senderId: 'one', groupKey: 'red', meta: '{}', body: Buffer.from('body') };
      const cfgv = (await redis().call('hget', w.k.meta, 'cfgv')) as string;
      const ingest = createIngest(redis());
      expect(await ingest(w.part, cfgv, [event])).toMatchObject({ events: [{ answer: 'OK' }] });
      await redis().call('del', w.k.meta);
      w.t.clock.ms = Date.now();
      await w.t.pass();
      expect(await ingest(w.part, cfgv, [event])).toMatchObject({ events: [{ answer: 'DUP' }] });
    });
  });

  test('very many activations are compared a page at a time', async () => {
    for (let n = 0; n < 5_000; n++) w.t.put('Activation', w.t.activation(`k${n}`));
    w.t.tenants.forget([w.t.name]);
    await redis().call('del', integrationKeys(w.t.integration).meta);
    await w.t.tenants.sync(w.t.name);
    w.t.calls.length = 0;
    expect(await w.t.look()).toEqual([]);
    const pages = w.t.calls.filter(call => call === 'read-page').length;
    expect(pages).toBeGreaterThan(10);
    expect(pages).toBeLessThan(40);
    await redis().call('hdel', w.k.keys, 'k7', 'k4999');
    expect((await w.t.look()).map(({ what }) => what)).toEqual(['part-activation', 'part-activation']);
    await redis().call('del', w.k.keys);
    expect((await w.t.look()).map(({ id }) => id)).toContain('many part-activation');
    await w.t.pass();
    expect(await redis().call('hlen', w.k.keys)).toBe(5_004);
  });

  describe('a slot that is emptied', () => {
    const places: readonly [string, () => string][] = [
      ['of the part', () => `{q:${w.t.tenant}:orders:0}`],
      ['of the tenant', () => `{t:${w.t.tenant}}`],
      ['of the integration', () => `{i:${w.t.integration}}`],
      ['of the record of the stream', () => `{q:${w.t.tenant}:orders}`],
    ];
    test.each(places)('%s: everything is in force again', async (_what, tag) => {
      const before = await w.dump();
      for (const page of await redis().callAll('keys', `${tag()}*`)) {
        for (const key of page as string[]) await redis().call('del', key);
      }
      await w.t.pass();
      expect(await w.dump()).toEqual(before);
      expect(await w.send('red', 'black')).toBe('OK');
      await w.advanceAll();
      expect(await w.routed()).toBe(1);
      expect(await w.t.look()).toEqual([]);
    });
  });

  describe('orphans', () => {
    const sweep = async (passes = 2) => {
      for (let n = 0; n < passes; n++) {
        await w.t.garbage.pass(new Set([w.t.tenant]));
        await w.t.work();
      }
    };
    const gone = (): Part => ({ ...w.part, queue: 'gone', gen: 'g1' });
    const list = (part: Part) => redis().call('hset', CLUSTER_KEYS.parts, `${part.tenant}:${part.queue}:0`, part.gen);
    const isListed = (part: Part) => redis().call('hexists', CLUSTER_KEYS.parts, `${part.tenant}:${part.queue}:0`);

    test('a listed part without a stream goes with what is left of its generations, in the second pass', async () => {
      await list(gone());
      const [own, old] = [partKeys(gone()), partKeys({ ...gone(), gen: 'g0' })];
      await redis().call('hset', own.meta, 'gen', 'g1', 'state', 'open', 'was', 'g0');
      for (const keys of [own, old]) await redis().call('hset', keys.keys, 'red', '');
      await sweep(1);
      expect(await isListed(gone())).toBe(1);
      await sweep(1);
      expect(await isListed(gone())).toBe(0);
      expect(await redis().call('exists', own.keys, old.keys)).toBe(0);
      expect((await redis().readHash(own.meta))['gen']).toBe('-');
      expect(w.t.swept).toEqual(['part']);
      expect(await isListed(w.part)).toBe(1);
      expect(await w.t.look()).toEqual([]);
    });

    test('it stays while something in it is undelivered, and takes no events', async () => {
      await list(gone());
      const keys = partKeys(gone());
      await redis().call('hset', keys.meta, 'gen', 'g1', 'state', 'open', 'retentionMs', 3_600_000);
      await redis().call('xadd', keys.log, '*', 'g', 'red');
      await redis().call('zadd', keys.pending, 0, 'x');
      await sweep(3);
      expect(await isListed(gone())).toBe(1);
      expect(await redis().call('exists', keys.log)).toBe(1);
      expect((await redis().readHash(keys.meta))['state']).toBe('closing');
      await redis().call('del', keys.pending);
      await sweep(1);
      expect(await isListed(gone())).toBe(0);
      expect(await redis().call('exists', keys.log)).toBe(0);
    });

    test('it stays when the quorum has its stream', async () => {
      await list(gone());
      w.t.actual.onRelist = () => {
        const { stream } = w.t.objects;
        w.t.put('CatalogStream', { ...stream, metadata: { ...stream.metadata, name: 'gone', uid: 'x' } });
      };
      await sweep(3);
      expect(await isListed(gone())).toBe(1);
      expect(w.t.swept).toEqual([]);
    });

    test('a stream that went without its finalizer goes, also from the list, and may come again', async () => {
      w.t.remove('CatalogStream', w.t.objects.stream);
      w.t.remove('Subscription', w.t.objects.subscription);
      w.t.tenants.forget([w.t.name]);
      await w.t.tenants.sync(w.t.name);
      await sweep(4);
      expect(await isListed(w.part)).toBe(0);
      expect(w.t.swept).toEqual(['inbox', 'queue']);
      // Nothing of the record is left either.
      const left = [queueKeys(w.t.tenant, 'orders').meta, integrationKeys(w.t.integration).sub(w.t.sub)] as const;
      expect(await redis().call('exists', left[0])).toBe(0);
      expect(await redis().call('exists', left[1])).toBe(0);
      w.t.put('CatalogStream', w.t.objects.stream);
      w.t.put('Subscription', w.t.objects.subscription);
      await w.t.tenants.sync(w.t.name);
      expect(await isListed(w.part)).toBe(1);
      expect(await w.t.look()).toEqual([]);
      expect(await w.send('red')).toBe('OK');
      await w.advanceAll();
      expect(await w.routed()).toBe(1);
    });

    test('the parts of a tenant without an object are closed, and removed', async () => {
      const left = w;
      w = await open(redis());
      w.t.fence.epoch = 2;
      for (let n = 0; n < 4; n++) await w.t.garbage.pass(new Set([left.t.tenant]));
      expect(await isListed(left.part)).toBe(0);
      expect((await redis().readHash(left.k.meta))['gen'] ?? '-').toBe('-');
      expect(await isListed(w.part)).toBe(1);
    });
  });
});
