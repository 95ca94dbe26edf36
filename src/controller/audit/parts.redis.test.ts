import { beforeEach, describe, expect, test } from 'vitest';
import { type AuditedPart, createAuditedPart } from '../../../test/support/controller/audited-part.ts';
import { createIngest } from '../../part/log/ingest.ts';
import { withoutSubscription } from '../../record/tenant-index.ts';
import type { RedisClient } from '../../redis/client.ts';
import { CLUSTER_KEYS, integrationKeys } from '../../redis/keys.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';

/** Commands and scripts that do not write. */
const READS = new Set(['hashes', 'probe', 'smembers', 'hscan', 'zscan', 'hgetall', 'hmget', 'read-page', 'slots']);

const OTHER = '0'.repeat(8);
const SINCE = '0'.repeat(15);

/** Manual changes to Redis, and how the audit classifies them. */
const DAMAGE: readonly [string, string, (w: AuditedPart, run: RedisClient['call']) => Promise<unknown>][] = [
  ['the part is not listed', 'part-list', (w, run) => run('hdel', CLUSTER_KEYS.parts, w.name)],
  ['it is listed with another generation', 'part-list', (w, run) => run('hset', CLUSTER_KEYS.parts, w.name, 'x')],
  ...['cfgv', 'state', 'maxBytes', 'retentionMs', 'source', 'eventTypes', 'contextHeaders', 'payer', 'plan'].flatMap(
    (field): typeof DAMAGE => [
      [`${field} is another`, 'part', (w, run) => run('hset', w.k.meta, field, '7')],
      [`${field} goes`, 'part', (w, run) => run('hdel', w.k.meta, field)],
    ],
  ),
  ['a limit of its account is added', 'part', (w, run) => run('hset', w.k.meta, 'eventsPerSecond', '7')],
  ['a limit of stored bytes is added', 'part', (w, run) => run('hset', w.k.meta, 'storedMax', '7')],
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
  ['an activation is added', 'part-activation', (w, run) => run('hset', w.k.keys, 'black', w.slot + SINCE)],
  [
    'an activation of an unknown slot is added',
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
  ['a row is added', 'part-row', (w, run) => run('hset', w.k.subs, OTHER, 'x')],
  ['all rows go', 'part-row', (w, run) => run('del', w.k.subs)],
  ['an endpoint goes', 'part-endpoint', (w, run) => run('hdel', w.k.endpoints, w.slot)],
  ['an endpoint is another', 'part-endpoint', (w, run) => run('hset', w.k.endpoints, w.slot, 'x')],
  ['an endpoint without a subscription is added', 'part-endpoint', (w, run) => run('hset', w.k.endpoints, OTHER, 'x')],
];

onEachRedis(redis => {
  let w: AuditedPart;
  beforeEach(async () => {
    w = await createAuditedPart(redis());
  });

  test('finds nothing and writes nothing if there is no damage, any number of times', async () => {
    w.t.calls.length = 0;
    for (let n = 0; n < 3; n++) {
      expect(await w.t.look()).toEqual([]);
      await w.t.pass();
      await w.t.garbage.pass(new Set([w.t.tenant]));
    }
    expect(w.t.calls.filter(call => !READS.has(call))).toEqual([]);
    // Each comparison reads one page.
    expect(w.t.calls.filter(call => call === 'read-page')).toHaveLength(9);
    expect([w.t.events, w.t.repaired, w.t.relisted]).toEqual([[], [], []]);
  });

  test.each(DAMAGE)('%s: is found and repaired', async (_what, label, damage) => {
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

  test('ignores a difference that no longer exists in the second comparison', async () => {
    const listed = await w.t.listed();
    const list = (await redis().call('hget', w.k.keys, 'red')) as string;
    const source = (await redis().call('hget', w.k.meta, 'source')) as string;
    await redis().call('hdel', w.k.keys, 'red');
    await redis().call('hset', w.k.meta, 'source', 'x');
    const first = await w.t.audit.compareTenant(w.t.name, listed);
    expect(first.map(({ what }) => what).toSorted()).toEqual(['part', 'part-activation']);
    await redis().call('hset', w.k.keys, 'red', list);
    await redis().call('hset', w.k.meta, 'source', source);
    // This difference is new, so it is only reported if it is found again.
    await redis().call('del', w.k.endpoints);
    await w.t.audit.repair({ tenants: new Map([[w.t.name, first]]), accounts: new Map() }, listed);
    expect([w.t.queue.tenants.size, w.t.events]).toEqual([0, []]);
  });

  test('a deleted subscription does not require any repair, even if its group keys change afterwards', async () => {
    const { subscription } = w.t.objects;
    const inc = (await redis().call('hget', integrationKeys(w.t.integration).sub(w.t.sub), 'inc')) as string;
    const inbox = { integration: w.t.integration, sub: w.t.sub, inc };
    w.t.remove('Subscription', subscription);
    await w.t.tenants.sync(w.t.name);
    await w.t.tenants.remove(
      w.t.name,
      subscription.metadata.uid,
      fence => w.t.control.dropInbox(fence, w.t.tenant, inbox, 3_600_000),
      left => withoutSubscription(left, inbox),
    );
    await w.t.tenants.sync(w.t.name);
    w.t.put('Activation', w.t.activation('violet'));
    await w.t.reconcilePair(`${w.t.name}/ada/violet`);
    expect(Object.keys(await redis().readHash(w.k.keys))).toEqual(['']);
    await w.t.pass();
    expect([w.t.repaired, w.t.events]).toEqual([[], []]);
  });

  test('ignores a pair that a worker is processing', async () => {
    await redis().call('hdel', w.k.keys, 'red');
    w.t.queue.pairs.add(`${w.t.name}/ada/red`);
    expect(await w.t.look()).toEqual([]);
  });

  test('an activation that is not in the caches yet is not removed', async () => {
    const violet = w.t.activation('violet');
    await redis().call('hset', w.k.keys, 'violet', w.slot + SINCE);
    await redis().call('hset', integrationKeys(w.t.integration).act, 'violet', 5);
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
    ])('that are accepted while %s are routed after the repair', async (_what, damage) => {
      await damage(redis().call);
      expect(await w.send('red', 'black')).toBe('OK');
      expect(await w.routed()).toBe(0);
      await w.t.pass();
      await w.advanceAll();
      expect(await w.routed()).toBe(1);
    });

    test('that were accepted before the loss of meta are kept, and routed once', async () => {
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

    test('detects repeated ids after meta was lost', async () => {
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

  test('compares very many activations in pages', async () => {
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

  describe('an emptied slot', () => {
    const places: readonly [string, () => string][] = [
      ['of the part', () => `{q:${w.t.tenant}:orders:0}`],
      ['of the tenant', () => `{t:${w.t.tenant}}`],
      ['of the integration', () => `{i:${w.t.integration}}`],
      ['of the record of the stream', () => `{q:${w.t.tenant}:orders}`],
    ];
    test.each(places)('%s: all routes are in force again', async (_what, tag) => {
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
});
