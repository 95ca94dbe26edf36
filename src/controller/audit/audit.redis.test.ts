import { beforeEach, describe, expect, test } from 'vitest';
import { type AuditedTenant, createAuditedTenant } from '../../../test/support/controller/audited-tenant.ts';
import type { RedisClient } from '../../redis/client.ts';
import { accountKeys, CLUSTER_KEYS, integrationKeys, queueKeys, tenantKeys } from '../../redis/keys.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';

/** Commands and scripts that do not write. */
const READS = new Set(['hashes', 'probe', 'smembers', 'hscan', 'hgetall', 'hmget', 'read-page', 'slots']);

function keysOf(t: AuditedTenant) {
  return {
    c: CLUSTER_KEYS,
    t: tenantKeys(t.tenant),
    q: queueKeys(t.tenant, 'orders'),
    i: integrationKeys(t.integration),
    a: accountKeys(t.account),
  };
}

/** Returns the control state, excluding values that depend on the history: since, epochs, and fences. */
async function dump(redis: RedisClient, t: AuditedTenant): Promise<object> {
  const k = keysOf(t);
  const hash = async (key: string) => {
    const { since: _, fence: _2, ...fields } = await redis.readHash(key);
    return fields;
  };
  const activations = [...(await t.control.readActivations(t.integration))];
  return {
    listed: await redis.call('sismember', k.c.tenants, t.tenant),
    tenant: await hash(k.t.meta),
    keys: await hash(k.t.keys),
    index: await hash(k.t.index),
    subscribers: await hash(k.t.subs('orders')),
    queue: await hash(k.q.meta),
    integration: await hash(k.i.meta),
    subscription: await hash(k.i.sub(t.sub)),
    activations: activations.map(([groupKey, since]) => `${groupKey} ${Number.isFinite(since)}`).toSorted(),
    account: await hash(k.a.meta),
  };
}

type Command = readonly [string, string, ...(string | number)[]];
type Keys = ReturnType<typeof keysOf>;

/** Manual changes to Redis, and how the audit classifies them. */
const DAMAGE: readonly [string, string, (k: Keys, t: AuditedTenant) => Command[]][] = [
  ['an active key goes', 'activation', k => [['hdel', k.i.act, 'red']]],
  ['an active key is added', 'activation', k => [['hset', k.i.act, 'black', 5]]],
  [
    'one active key is replaced with another',
    'activation',
    k => [
      ['hdel', k.i.act, 'red'],
      ['hset', k.i.act, 'black', 5],
    ],
  ],
  ['an active key is garbled', 'activation', k => [['hset', k.i.act, 'red', 'x']]],
  ['all active keys go', 'activation', k => [['del', k.i.act]]],
  ['a route closes', 'subscription', (k, t) => [['hset', k.i.sub(t.sub), 'route', 'closed']]],
  ['sending stops', 'subscription', (k, t) => [['hset', k.i.sub(t.sub), 'send', 'held']]],
  ['an endpoint is another', 'subscription', (k, t) => [['hset', k.i.sub(t.sub), 'endpoint', 'x']]],
  ['an inbox is another', 'subscription', (k, t) => [['hset', k.i.sub(t.sub), 'inc', 'x']]],
  ['a pause is remembered that never was', 'subscription', (k, t) => [['hset', k.i.sub(t.sub), 'onUnblock', 'skip']]],
  ['order is given up', 'subscription', (k, t) => [['hset', k.i.sub(t.sub), 'unordered', 1]]],
  ['a field goes', 'subscription', (k, t) => [['hdel', k.i.sub(t.sub), 'cap']]],
  ['the inbox goes from its subscription', 'subscription', (k, t) => [['hdel', k.i.sub(t.sub), 'inc']]],
  ['a subscription goes', 'subscription', (k, t) => [['del', k.i.sub(t.sub)]]],
  ['an integration closes', 'integration', k => [['hset', k.i.meta, 'state', 'closed']]],
  ['an integration goes', 'integration', k => [['hdel', k.i.meta, 'state']]],
  ['an integration is not ready', 'ready', k => [['hdel', k.i.meta, 'ready']]],
  [
    'a whole integration goes',
    'integration',
    (k, t) => [
      ['del', k.i.meta],
      ['del', k.i.act],
      ['del', k.i.sub(t.sub)],
    ],
  ],
  ['a queue closes', 'queue', k => [['hset', k.q.meta, 'state', 'closing']]],
  ['a queue is another', 'queue', k => [['hset', k.q.meta, 'gen', 'x']]],
  ['a version is another', 'queue', k => [['hset', k.q.meta, 'cfgv', 'x']]],
  ['headers are no JSON', 'queue', k => [['hset', k.q.meta, 'contextHeaders', '{']]],
  ['a retention goes', 'queue', k => [['hdel', k.q.meta, 'retentionMs']]],
  ['a queue is not ready', 'ready', k => [['hdel', k.q.meta, 'ready']]],
  ['a whole queue goes', 'queue', k => [['del', k.q.meta]]],
  ['a subscriber goes', 'subscribers', (k, t) => [['hdel', k.t.subs('orders'), t.integration]]],
  ['a subscriber is added', 'subscribers', k => [['hset', k.t.subs('orders'), 'int_x', 'sub_x.y']]],
  ['a subscriber is another', 'subscribers', (k, t) => [['hset', k.t.subs('orders'), t.integration, 'sub_x.y']]],
  ['a key goes', 'keys', k => [['del', k.t.keys]]],
  ['a key is added', 'keys', k => [['hset', k.t.keys, 'cd'.repeat(32), '']]],
  ['another pays', 'tenant', k => [['hset', k.t.meta, 'payer', 'acc_x']]],
  ['another plan', 'tenant', k => [['hset', k.t.meta, 'plan', 'Metered']]],
  ['a limit is added', 'tenant', k => [['hset', k.t.meta, 'eventsPerSecond', '7']]],
  ['a tenant is not ready', 'ready', k => [['hdel', k.t.meta, 'ready']]],
  ['an index goes', 'index', k => [['del', k.t.index]]],
  ['an entry of the index goes', 'index', k => [['hdel', k.t.index, 'q:orders']]],
  [
    'the whole slot of a tenant goes',
    'tenant',
    k => [k.t.meta, k.t.keys, k.t.index, k.t.subs('orders')].map(key => ['del', key] as const),
  ],
  ['a tenant is not listed', 'membership', (k, t) => [['srem', k.c.tenants, t.tenant]]],
  ["an account's plan is another", 'account', k => [['hset', k.a.meta, 'plan', 'Metered']]],
  ["an account's tokens go", 'account', k => [['hdel', k.a.meta, 'included']]],
];

onEachRedis(redis => {
  let t: AuditedTenant;
  beforeEach(async () => {
    t = await createAuditedTenant(redis());
    await t.begin(['red', 'green', 'blue']);
  });

  test('finds nothing and writes nothing if there is no damage, any number of times', async () => {
    t.calls.length = 0;
    for (let n = 0; n < 3; n++) {
      expect(await t.look()).toEqual([]);
      await t.pass();
      await t.garbage.pass(new Set([t.tenant]));
    }
    expect(t.calls.filter(call => !READS.has(call))).toEqual([]);
    expect([t.events, t.repaired, t.relisted]).toEqual([[], [], []]);
  });

  test.each(DAMAGE)('%s: is found and repaired', async (_what, label, damage) => {
    const before = await dump(redis(), t);
    for (const [command, key, ...args] of damage(keysOf(t), t)) await redis().call(command, key, ...args);
    expect(await dump(redis(), t)).not.toEqual(before);
    t.calls.length = 0;
    const found = await t.look();
    expect(t.calls.filter(call => !READS.has(call))).toEqual([]);
    await t.pass();
    expect(await dump(redis(), t)).toEqual(before);
    expect(t.repaired).toContain(label);
    expect(t.events).toHaveLength(1);
    expect(t.events[0]).toContain(`${t.name} Warning DriftRepaired`);
    expect(t.events[0]).toContain(label);
    expect(found.length > 0 || label === 'account').toBe(true);
    t.calls.length = 0;
    await t.pass();
    expect(t.calls.filter(call => !READS.has(call))).toEqual([]);
    expect(t.events).toHaveLength(1);
  });

  test('ignores a difference that no longer exists in the second comparison', async () => {
    const { t: keys, i } = keysOf(t);
    const listed = await t.listed();
    await redis().call('hdel', i.act, 'red');
    await redis().call('hset', i.sub(t.sub), 'route', 'paused');
    const first = await t.audit.compareTenant(t.name, listed);
    expect(first.map(({ what }) => what).toSorted()).toEqual(['activation', 'subscription']);
    await redis().call('hset', i.act, 'red', 5);
    await redis().call('hset', i.sub(t.sub), 'route', 'open');
    // This difference is new, so it is only reported if it is found again.
    await redis().call('del', keys.keys);
    await t.audit.repair({ tenants: new Map([[t.name, first]]), accounts: new Map() }, listed);
    expect([t.queue.tenants.size, t.queue.pairs.size, t.events]).toEqual([0, 0, []]);
  });

  test('ignores a pair that a worker is processing, and a tenant that is being written', async () => {
    await redis().call('hdel', keysOf(t).i.act, 'red');
    t.queue.pairs.add(`${t.name}/ada/red`);
    expect(await t.look()).toEqual([]);
    t.queue.pairs.clear();
    t.tenants.forget([t.name]);
    expect(await t.look()).toEqual([]);
  });

  test('treats a change of the objects that has not been written yet as pending work, and not as damage', async () => {
    t.put('Integration', { ...t.objects.integration, spec: { workspace: t.partner, revoked: true } } as never);
    expect(await t.look()).toEqual([]);
    expect([...t.queue.tenants]).toEqual([t.name]);
  });

  describe('with a stale cache', () => {
    test('keeps an existing activation, and lists the objects again', async () => {
      const violet = t.activation('violet');
      await redis().call('hset', keysOf(t).i.act, 'violet', 5);
      t.actual.pairs = [violet];
      t.actual.onRelist = what => {
        if (what === 'activations') t.put('Activation', violet);
      };
      await t.pass();
      expect(t.relisted).toContain('activations');
      expect(await redis().call('hget', keysOf(t).i.act, 'violet')).toBe('5');
      expect(t.events).toEqual([]);
    });

    test('keeps an existing activation if the routes are damaged as well, and repairs the routes', async () => {
      const violet = t.activation('violet');
      await redis().call('hset', keysOf(t).i.act, 'violet', 5);
      await redis().call('hdel', keysOf(t).t.keys, 'ab'.repeat(32));
      t.actual.pairs = [violet];
      t.actual.onRelist = what => {
        if (what === 'activations') t.put('Activation', violet);
      };
      await t.pass();
      expect(await redis().call('hget', keysOf(t).i.act, 'violet')).toBe('5');
      expect(await redis().call('hlen', keysOf(t).t.keys)).toBe(1);
      expect(t.repaired).toEqual(['keys']);
    });

    test('leaves a route that differs in the quorum read to its worker', async () => {
      await redis().call('hset', keysOf(t).i.sub(t.sub), 'route', 'paused');
      t.actual.onRelist = () =>
        t.put('Integration', { ...t.objects.integration, spec: { workspace: t.partner, revoked: true } } as never);
      await t.pass();
      expect(t.events).toEqual([]);
    });

    test('repairs nothing if the API server does not respond', async () => {
      await redis().call('hset', keysOf(t).i.act, 'black', 5);
      t.actual.onRelist = () => {
        throw new Error('unavailable');
      };
      await expect(t.pass()).rejects.toThrow('unavailable');
      expect([t.queue.tenants.size, t.queue.pairs.size]).toEqual([0, 0]);
    });
  });

  test('compares very many active keys in several parts', async () => {
    const many = Array.from({ length: 4_000 }, (_, n) => `k${n}`);
    for (const groupKey of many) t.put('Activation', t.activation(groupKey));
    t.tenants.forget([t.name]);
    // The slot is not ready, so all keys are written in bulk.
    await redis().call('del', keysOf(t).i.meta);
    await t.tenants.sync(t.name);
    t.calls.length = 0;
    expect(await t.look()).toEqual([]);
    // A command contains 500 keys, and 200 of them are in the part.
    expect(t.calls.length).toBeLessThan(60);
    expect(t.calls).not.toContain('hscan');
    await redis().call('hdel', keysOf(t).i.act, 'k7', 'k3999');
    await redis().call('hset', keysOf(t).i.act, 'black', 5);
    expect((await t.look()).map(({ id }) => id.split(' ').slice(0, 2).join(' '))).toEqual([
      'activation +',
      'activation +',
      'activation -',
    ]);
    // There are too many pairs to store them separately.
    await redis().call('del', keysOf(t).i.act);
    const found = await t.look();
    expect(found.map(({ id }) => id)).toContain('many activation');
    expect(found.length).toBeLessThan(3);
    await t.pass();
    expect(await redis().call('hlen', keysOf(t).i.act)).toBe(4_003);
  });
});
