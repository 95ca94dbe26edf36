import { expect, test } from 'vitest';
import { createTestPart } from '../../../test/support/part/part.ts';
import type { InboxRef } from '../../redis/inbox-store.ts';
import { integrationKeys, tenantKeys } from '../../redis/keys.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import type { SubscriptionRow } from '../gate/subscription-row.ts';
import { refOfMs } from '../lanes/ref.ts';
import { createPartSource } from './sandbox-source.ts';

onEachRedis(redis => {
  /** A part whose subscriptions are `sub_<name>` of `int_<name>`, active for the group key `k`. */
  async function start(subs: Readonly<Record<string, Partial<SubscriptionRow>>> = { a: {} }) {
    const t = createTestPart(redis());
    const { tenant, queue } = t.part;
    const names = Object.keys(subs);
    const rows = names.map(name => [`sub_${name}`, { integration: integrationOf(name), ...subs[name] }] as const);
    await t.setUp(Object.fromEntries(rows), []);
    await t.change({ kind: 'meta', field: 'payer', value: 'acc_1' });
    const since = refOfMs(5_000);
    await t.change(...names.map(name => ({ kind: 'on', slot: t.slot(`sub_${name}`), groupKey: 'k', since }) as const));
    const keys = tenantKeys(tenant);
    await redis().call('hset', keys.meta, 'ready', '1');
    await redis().call('hset', keys.index, `q:${queue}`, 'gen1');
    await redis().call('hset', keys.subs(queue), ...names.flatMap(name => [integrationOf(name), `sub_${name}.inc1`]));
    const source = createPartSource(redis());
    return {
      t,
      keys,
      slot: (name: string) => t.slot(`sub_${name}`),
      lookup: (...groupKeys: string[]) => source.lookup({ tenant, queue }, groupKeys),
      gate: (name = 'a', groupKeys: readonly string[] = ['k']) => {
        const inbox: InboxRef = { integration: integrationOf(name), sub: `sub_${name}`, inc: 'inc1' };
        return source.readGate({ tenant, queue, inbox }, groupKeys);
      },
    };
    function integrationOf(name: string): string {
      return `int_${tenant.slice(4)}${name}`;
    }
  }

  test('a subscription is read as the part has it', async () => {
    const { t, slot, gate } = await start({ a: { cap: 5, maxPerSecond: 7, unordered: true, send: 'held' } });
    const { tenant, queue } = t.part;
    const common = { inc: 'inc1', tenant, queue, gen: 'gen1', route: 'open', send: 'held', cap: '5', cfgv: 'v1' };
    expect(await gate()).toEqual({
      integration: { ready: '1', state: 'active' },
      subscription: { ...common, unordered: '1' },
      activations: new Map([['k', '5000']]),
    });
    await t.change({ kind: 'endpoint', slot: slot('a'), sealed: 'sub_a.inc1 sealed' });
    expect((await gate()).subscription.endpoint).toBe('sealed');
    // Of another subscription with the same slot.
    await t.change({ kind: 'endpoint', slot: slot('a'), sealed: 'sub_b.inc1 sealed' });
    expect((await gate()).subscription.endpoint).toBeUndefined();
    expect((await gate('b')).subscription).toEqual({});
    await t.setRow('sub_a', { integration: 'int_other' });
    expect((await gate()).subscription).toEqual({});
    await t.change({ kind: 'drop', slot: slot('a') });
    expect((await gate()).subscription).toEqual({});
  });

  test('an endpoint is disabled until its owner enables it', async () => {
    const { t, slot, gate } = await start();
    const say = async (health: string, enabledMs?: number) => {
      await redis().call('hset', t.keys.health, slot('a'), health);
      await t.setRow('sub_a', { integration: await ownerOf(), ...(enabledMs === undefined ? {} : { enabledMs }) });
      return (await gate()).subscription.health;
    };
    const ownerOf = async () => `${await redis().call('hget', t.keys.subs, slot('a'))}`.split(' ')[1] as string;
    expect(await say('100 3 0 0 - ')).toBeUndefined();
    expect(await say('100 3 0 0 200g ')).toBe('100 3 0 0 - 200 gone');
    expect(await say('100 3 0 0 200f entry of a probe')).toBe('100 3 0 0 - 200 failing');
    expect(await say('100 3 0 0 200g ', 200)).toBe('100 3 0 0 - 200 gone');
    expect(await say('100 3 0 0 200g ', 201)).toBeUndefined();
  });

  test('what no part knows is read from the record of the controller', async () => {
    const { t, gate } = await start();
    const name = `int_${t.part.tenant.slice(4)}a`;
    const i = integrationKeys(name);
    await redis().call('hset', i.meta, 'state', 'pending', 'since', '3', 'ready', '0');
    await redis().call('hset', i.sub('sub_a'), 'since', '4', 'skipTo', '5', 'route', 'paused');
    await t.setRow('sub_a', { integration: name, route: 'closed' });
    const { integration, subscription } = await gate();
    expect(integration).toEqual({ ready: '1', state: 'pending', since: '3' });
    expect(subscription).toMatchObject({ since: '4', skipTo: '5', route: 'open' });
    await redis().call('hset', i.meta, 'state', 'active');
    expect((await gate()).subscription.route).toBe('closed');
  });

  test('group keys of more subscriptions than a field holds are found, many at once', async () => {
    const names = Array.from({ length: 300 }, (_, i) => `s${i}`);
    const { t, slot, lookup, gate } = await start(Object.fromEntries(names.map(name => [name, {}])));
    const more = Array.from({ length: 70 }, (_, i) => `k${i}`);
    await t.change(...more.map(groupKey => ({ kind: 'on', slot: slot('s7'), groupKey }) as const));
    const found = await lookup('k', 'k3', 'none');
    expect(found?.subscriptions.size).toBe(300);
    expect(found?.payer).toBe('acc_1');
    expect([...(found?.gates ?? [])].map(([key, open]) => [key, open.size])).toEqual([
      ['k', 300],
      ['k3', 1],
      ['none', 0],
    ]);
    expect([...(found?.gates.get('k3') ?? [])]).toEqual([`int_${t.part.tenant.slice(4)}s7`]);
    const asked = ['none', ...more, 'k'];
    for (const [name, size] of [
      ['s7', 71],
      ['s299', 1],
    ] as const) {
      expect((await gate(name, asked)).activations.size).toBe(size);
    }
    // More fields than one call looks through.
    const lists = (await redis().call('hmget', t.keys.keys, 'k', 'k\x002', 'k\x003')) as string[];
    const wide = Array.from({ length: 150 }, (_, i) => `w${i}`);
    for (const groupKey of wide) {
      const fields = lists.flatMap((list, i) => [i === 0 ? groupKey : `${groupKey}\0${i + 1}`, list]);
      await redis().call('hset', t.keys.keys, ...fields);
    }
    expect((await gate('s299', ['none', ...wide, 'k3'])).activations.size).toBe(150);
  });

  test('nothing is believed while control data are missing, and nothing waits for a stream that is gone', async () => {
    const { t, keys, lookup, gate } = await start();
    const closed = { integration: {}, subscription: {}, activations: new Map() };
    await redis().call('hdel', t.keys.keys, '');
    expect([await lookup('k'), await gate()]).toEqual([undefined, closed]);
    await redis().call('hset', t.keys.keys, '', '1');
    await redis().call('hdel', t.keys.meta, 'ready');
    expect([await lookup('k'), await gate()]).toEqual([undefined, closed]);
    await redis().call('del', t.keys.meta);
    expect([await lookup('k'), await gate()]).toEqual([undefined, closed]);
    await redis().call('hdel', keys.index, `q:${t.part.queue}`);
    expect(await lookup('k')).toMatchObject({ subscriptions: new Map(), gates: new Map() });
    await redis().call('del', keys.meta);
    expect(await lookup('k')).toBeUndefined();
  });
});
