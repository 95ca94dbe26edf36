import { beforeEach, describe, expect, test } from 'vitest';
import type { SubscriptionRoute, TenantRoutes } from '../../core/routing/routes.ts';
import { createPartsControl } from '../../part/control/parts-control.ts';
import { parseRow } from '../../part/gate/subscription-row.ts';
import { type Part, partKeys, slotOf } from '../../part/keys.ts';
import { createIngest } from '../../part/log/ingest.ts';
import { planRoutes, type StoredRoutes } from '../../record/control-plan.ts';
import { type ControlStore, createControlRecord, FencedError } from '../../record/control-store.ts';
import type { OpenKey } from '../../record/open-keys.ts';
import { createTenant, QUEUE } from '../../record/testing/tenant.ts';
import type { RedisClient } from '../../redis/client.ts';
import { CLUSTER_KEYS, integrationKeys } from '../../redis/keys.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { applyRoutes } from './apply.ts';

/** A controller that remembers the applied state, like the real controller does during its term. */
function createWorld(redis: RedisClient) {
  const t = createTenant(redis);
  const open = new Map<string, OpenKey[]>();
  let stored: StoredRoutes | undefined;
  const ingest = createIngest(redis);
  const partOf = (queue = QUEUE, gen = 'gen1'): Part => ({ tenant: t.tenant, queue, gen, number: 0 });

  function lead(record: Partial<ControlStore> = {}) {
    stored = undefined;
    return createPartsControl(redis, { ...t.control, ...record }, () => Date.now());
  }

  const world = {
    t,
    partOf,
    keys: partKeys(partOf()),
    control: lead(),
    /** Makes another process the leader, which does not know the previous changes. */
    changeLeader(record: Partial<ControlStore> = {}) {
      world.control = lead(record);
    },
    slot: (name: string, inc = 'inc1') => slotOf(`sub_${name}`, inc),
    async apply(want: TenantRoutes, fail?: 'patch', onGates: () => void = () => {}) {
      const { control } = world;
      const had = stored ?? (await control.readTenant(t.tenant, t.fence.epoch));
      const first = stored === undefined;
      stored = undefined;
      const plan = planRoutes(had, want);
      const patch = () => Promise.reject(new Error('no patch'));
      const deps = {
        control: fail === 'patch' ? { ...control, patch } : control,
        nowMs: Date.now,
        openGates: () => {
          const gates = new Map(open);
          onGates();
          return gates;
        },
        exclusively: (_name: string, restore: () => Promise<void>) => restore(),
      };
      stored = await applyRoutes(deps, { name: 'x', fence: t.fence.epoch, stored: had, plan, wanted: want, first });
    },
    /** Opens or closes a group key according to the object and the control state. */
    async set(name: string, groupKey: string, isOpen: boolean) {
      world.declare(name, groupKey, isOpen);
      const sinceMs = isOpen ? Date.now() : null;
      return world.control.setActivation(t.fence.epoch, t.nameOf(name), groupKey, sinceMs);
    },
    declare(name: string, groupKey: string, isOpen: boolean) {
      const others = (open.get(t.nameOf(name)) ?? []).filter(gate => gate.groupKey !== groupKey);
      open.set(t.nameOf(name), isOpen ? [...others, { groupKey, sinceMs: Date.now() }] : others);
    },
    async send(groupKey: string, part = partOf()) {
      const cfgv = (await redis.call('hget', partKeys(part).meta, 'cfgv')) as string;
      const answer = await ingest(part, cfgv, [{ groupKey, meta: '{}', body: Buffer.from('body') }]);
      if (answer.answer !== 'OK') throw new Error(answer.answer);
    },
    /** Returns the references that have been routed to a subscription. */
    async routed(name: string, part = partOf()) {
      const text = (await redis.call('hget', partKeys(part).counts, world.slot(name))) as string | null;
      return Number((text ?? '0 0').split(' ')[1]);
    },
    /** Returns the existing keys of the first generation. */
    async countKeys() {
      const names = Object.values(world.keys).filter(
        key => typeof key === 'string' && key.endsWith(':gen1'),
      ) as string[];
      return redis.call('exists', ...(names as [string]));
    },
    row: async (name: string) => parseRow(String(await redis.call('hget', partKeys(partOf()).subs, world.slot(name)))),
  };
  return world;
}

onEachRedis(redis => {
  let w: ReturnType<typeof createWorld>;
  beforeEach(() => {
    w = createWorld(redis());
  });

  describe('routes', () => {
    test('a part contains its stream and subscriptions, and is listed', async () => {
      await w.apply(w.t.routes({ a: {}, b: { sub: { route: 'paused', send: 'held', cap: 3 } } }));
      const meta = await redis().readHash(w.keys.meta);
      expect(meta).toMatchObject({ gen: 'gen1', ready: '1', state: 'open', payer: w.t.account, plan: 'Metered' });
      expect(await w.row('a')).toMatchObject({ route: 'open', send: 'open', integration: w.t.nameOf('a') });
      expect(await w.row('b')).toMatchObject({ route: 'paused', send: 'held', cap: 3 });
      expect(await redis().call('hget', w.keys.endpoints, w.slot('a'))).toBe('sub_a.inc1 sealed');
      expect(await redis().call('hget', CLUSTER_KEYS.parts, `${w.t.tenant}:${QUEUE}:0`)).toBe('gen1');
    });

    test('a subscription is closed while its integration is not active', async () => {
      await w.apply(w.t.routes({ a: { state: 'pending' } }));
      expect(await w.row('a')).toMatchObject({ route: 'closed' });
      await w.apply(w.t.routes({ a: {} }));
      expect(await w.row('a')).toMatchObject({ route: 'open' });
    });

    test('only writes to the parts that change, and nothing if there are no changes', async () => {
      const routes = w.t.routes({ a: {}, b: {} });
      await w.apply(routes);
      const before = redis().commandsSent();
      await w.apply(routes);
      expect(redis().commandsSent()).toBe(before);
    });

    test('a new subscription receives events that are accepted from then on, with the open keys', async () => {
      await w.apply(w.t.routes({ a: {} }));
      await w.set('a', 'k', true);
      await w.send('k');
      w.declare('b', 'k', true);
      await w.apply(w.t.routes({ a: {}, b: {} }));
      await w.send('k');
      expect([await w.routed('a'), await w.routed('b')]).toEqual([2, 1]);
    });

    test('a closed subscription is kept until it is removed', async () => {
      await w.apply(w.t.routes({ a: {} }));
      await w.apply(w.t.routes({}));
      expect(await w.row('a')).toMatchObject({ route: 'closed', send: 'held' });
      await w.control.dropInbox(1, w.t.tenant, w.t.inboxOf('a'), 0);
      expect(await w.row('a')).toBeUndefined();
      expect(await redis().call('zscore', w.keys.dropped, w.slot('a'))).not.toBeNull();
    });

    test.each<[string, Partial<SubscriptionRoute>]>([
      ['a rate without room', { maxPerSecond: 100_000 }],
      ['a time that is no number', { enabledMs: Number.NaN }],
      ['too many attempts', { cap: 1_000_000 }],
    ])('a row that cannot be written is closed, and does not affect others: %s', async (_what, sub) => {
      await w.apply(w.t.routes({ a: {} }));
      await w.set('a', 'k', true);
      await w.apply(w.t.routes({ a: {}, b: { sub }, c: {} }));
      await w.set('c', 'k', true);
      await w.send('k');
      expect([await w.routed('a'), await w.routed('b'), await w.routed('c')]).toEqual([1, 0, 1]);
      expect(await w.row('b')).toMatchObject({ route: 'closed', send: 'held' });
      await w.apply(w.t.routes({ a: { sub: { route: 'paused' } }, b: { sub } }));
      await w.send('k');
      expect(await w.routed('a')).toBe(1);
      w.changeLeader();
      await w.apply(w.t.routes({ a: {}, b: {} }));
      expect([await w.row('a'), await w.row('b')]).toMatchObject([{ route: 'open' }, { route: 'open' }]);
    });

    test('a skipped backlog remains skipped, even if the controller stops before this is recorded', async () => {
      const pause = w.t.routes({ a: { sub: { route: 'paused', onUnblock: 'skip' } } });
      await w.apply(w.t.routes({ a: {} }));
      await w.set('a', 'k', true);
      await w.apply(pause);
      await w.send('k');
      await expect(w.apply(w.t.routes({ a: {} }), 'patch')).rejects.toThrow('no patch');
      expect(await w.row('a')).toMatchObject({ route: 'open' });
      w.changeLeader();
      await w.apply(w.t.routes({ a: {} }));
      await w.send('k');
      expect(await w.routed('a')).toBe(1);
      expect(await redis().call('exists', w.keys.positions)).toBe(0);
    });
  });

  describe('activations', () => {
    test('are opened and closed in every stream to which the integration is subscribed', async () => {
      const one = w.t.routes({ a: {} });
      const two = { ...one, queues: { ...one.queues, other: { ...one.queues[QUEUE]!, gen: 'gen7' } } };
      const integration = two.integrations[w.t.nameOf('a')]!;
      const subscriptions = {
        ...integration.subscriptions,
        sub_other: { ...integration.subscriptions.sub_a!, queue: 'other', gen: 'gen7' },
      };
      await w.apply({ ...two, integrations: { [w.t.nameOf('a')]: { ...integration, subscriptions } } });
      expect(await w.set('a', 'k', true)).toBe(true);
      expect(await w.set('a', 'k', true)).toBe(false);
      const keys = [w.keys.keys, partKeys(w.partOf('other', 'gen7')).keys];
      expect(await Promise.all(keys.map(key => redis().call('hexists', key, 'k')))).toEqual([1, 1]);
      expect(await w.set('a', 'k', false)).toBe(true);
      expect(await w.set('a', 'k', false)).toBe(false);
      expect(await Promise.all(keys.map(key => redis().call('hexists', key, 'k')))).toEqual([0, 0]);
    });

    test('are written again if they did not reach their part', async () => {
      await w.apply(w.t.routes({ a: {} }));
      await redis().call('hset', w.keys.meta, 'gen', 'another');
      await expect(w.set('a', 'k', true)).rejects.toThrow('another generation');
      await redis().call('hset', w.keys.meta, 'gen', 'gen1');
      await w.set('a', 'k', true);
      expect(await redis().call('hexists', w.keys.keys, 'k')).toBe(1);
    });

    test('are not recorded before the part of a new subscription contains them', async () => {
      await w.apply(w.t.routes({}));
      await w.apply(w.t.routes({ a: {} }), undefined, () => w.declare('a', 'k', true));
      expect(await redis().call('hexists', integrationKeys(w.t.nameOf('a')).act, 'k')).toBe(0);
      expect(await w.set('a', 'k', true)).toBe(true);
      expect(await redis().call('hexists', w.keys.keys, 'k')).toBe(1);
    });

    test('are written again if there was no response for their record', async () => {
      await w.apply(w.t.routes({ a: {} }));
      const [act, sinceMs] = [integrationKeys(w.t.nameOf('a')).act, Date.now()];
      const { setActivation } = w.t.control;
      let times = 0;
      w.changeLeader({
        async setActivation(...args) {
          const changed = await setActivation(...args);
          if (times++ === 0) throw new Error('Command timed out');
          return changed;
        },
      });
      await w.apply(w.t.routes({ a: {} }));
      await expect(w.set('a', 'k', true)).rejects.toThrow('timed out');
      expect(Number(await redis().call('hget', act, 'k'))).toBeGreaterThanOrEqual(sinceMs);
      await w.set('a', 'k', true);
      expect(await redis().call('hexists', w.keys.keys, 'k')).toBe(1);
    });

    test('are closed later if the part was not reached', async () => {
      await w.apply(w.t.routes({ a: {} }));
      await w.set('a', 'k', true);
      await redis().call('hset', w.keys.meta, 'gen', 'another');
      await expect(w.set('a', 'k', false)).rejects.toThrow('another generation');
      await redis().call('hset', w.keys.meta, 'gen', 'gen1');
      w.changeLeader();
      await w.apply(w.t.routes({ a: {} }));
      expect(await redis().call('hexists', w.keys.keys, 'k')).toBe(0);
    });
  });

  describe('another leader', () => {
    test('does not change anything if it was deposed', async () => {
      await w.apply(w.t.routes({ a: {} }));
      const deposed = w.control;
      w.changeLeader();
      w.t.fence.epoch = 2;
      await w.apply(w.t.routes({ a: {} }));
      await expect(deposed.dropInbox(1, w.t.tenant, w.t.inboxOf('a'), 0)).rejects.toThrow(FencedError);
      const open = deposed.setActivation(1, w.t.nameOf('a'), 'k', Date.now());
      await expect(open).rejects.toThrow(FencedError);
      expect(await redis().call('hexists', w.keys.keys, 'k')).toBe(0);
      expect(await w.row('a')).toBeDefined();
    });

    test('closes everything that it does not open during a pause, even without a record', async () => {
      const held = w.t.routes({ a: { sub: { route: 'paused', send: 'held' } }, c: {} });
      await w.apply(held);
      // There is no record for this generation.
      await expect(w.apply(w.t.routes({ a: {}, b: {}, c: {} }), 'patch')).rejects.toThrow('no patch');
      const deposed = w.control;
      w.changeLeader();
      await w.control.closeParts(2, (await w.control.readTenant(w.t.tenant, 2)).routes, () => new Map());
      expect(await w.row('a')).toMatchObject({ route: 'paused', send: 'held' });
      expect(await w.row('b')).toMatchObject({ route: 'closed', send: 'held' });
      expect(await w.row('c')).toMatchObject({ route: 'open', send: 'open' });
      const want = w.t.routes({ a: {}, c: {} });
      const change = { fence: 1, have: held, want, isKnown: true, openKeys: () => new Map() };
      await expect(deposed.applyParts(change)).rejects.toThrow(FencedError);
      expect(await w.row('a')).toMatchObject({ route: 'paused' });
      // Closed group keys stay closed.
      w.t.fence.epoch = 2;
      await w.apply(w.t.routes({}));
      await w.control.closeParts(2, held, () => new Map());
      expect(await w.row('c')).toMatchObject({ route: 'closed' });
    });

    test('repairs all differences', async () => {
      const routes = w.t.routes({ a: {}, b: {} });
      await w.apply(routes);
      await w.set('a', 'k', true);
      await redis().call('del', w.keys.keys, w.keys.endpoints);
      await redis().call('hset', w.keys.meta, 'state', 'closing');
      await redis().call('hdel', w.keys.subs, w.slot('b'));
      w.changeLeader();
      await w.apply(routes);
      await w.send('k');
      expect(await w.routed('a')).toBe(1);
      expect(await w.row('b')).toMatchObject({ route: 'open' });
      expect(await redis().call('hlen', w.keys.endpoints)).toBe(2);
    });

    test('repairs all activations of a large integration, even if there is a failover while it reads them', async () => {
      const routes = w.t.routes({ a: {} });
      await w.apply(routes);
      const { act } = integrationKeys(w.t.nameOf('a'));
      const names = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}${i}`);
      const [kept, stale, lost] = [names('kept', 2_500), names('stale', 50), names('lost', 50)];
      await redis().call('hset', act, ...[...kept, ...stale].flatMap(groupKey => [groupKey, 1]));
      for (const groupKey of [...kept, ...lost]) w.declare('a', groupKey, true);
      let failovers = 0;
      const failing: RedisClient = {
        ...redis(),
        async call(command, ...args) {
          // The cursor was returned by another master. Here, it skips the rest of the fields.
          if (command === 'hscan' && args[1] !== '0' && failovers++ === 0) return ['0', []];
          return redis().call(command, ...args);
        },
      };
      const { readActivations } = createControlRecord(failing);
      w.changeLeader({ readActivations });
      await w.apply(routes);
      expect(failovers).toBeGreaterThan(0);
      const recorded = await readActivations(w.t.nameOf('a'));
      expect([...recorded.keys()].toSorted()).toEqual([...kept, ...lost].toSorted());
      expect(recorded.get('kept0')).toBe(1);
    });

    test('recreates a part that was lost', async () => {
      const routes = w.t.routes({ a: {} });
      await w.apply(routes);
      await w.set('a', 'k', true);
      const { meta, keys, subs, endpoints } = w.keys;
      await redis().call('del', meta, keys, subs, endpoints);
      w.changeLeader();
      await w.apply(routes);
      await w.send('k');
      expect(await w.routed('a')).toBe(1);
    });
  });

  describe('streams', () => {
    test('an empty stream is created after the old one was removed', async () => {
      await w.apply(w.t.routes({ a: {} }));
      await w.set('a', 'k', true);
      await w.send('k');
      await w.apply(w.t.routes({ a: {} }, { gen: 'gen2' }));
      expect(await w.countKeys()).toBe(0);
      await w.send('k', w.partOf(QUEUE, 'gen2'));
      expect(await w.routed('a', w.partOf(QUEUE, 'gen2'))).toBe(1);
      expect(await redis().call('hget', CLUSTER_KEYS.parts, `${w.t.tenant}:${QUEUE}:0`)).toBe('gen2');
    });

    test('is not drained if its part has lost information about its events', async () => {
      await w.apply(w.t.routes({ a: {} }));
      await w.send('k');
      await redis().call('del', w.keys.meta);
      expect(await w.control.readDrain(w.t.tenant, QUEUE)).toEqual({ unrouted: 1, open: 0 });
      await redis().call('del', w.keys.log);
      expect(await w.control.readDrain(w.t.tenant, QUEUE)).toEqual({ unrouted: 0, open: 0 });
    });

    test('is removed and not listed anymore', async () => {
      await w.apply(w.t.routes({ a: {} }));
      await w.set('a', 'k', true);
      await w.send('k');
      expect(await w.control.readDrain(w.t.tenant, QUEUE)).toEqual({ unrouted: 0, open: 1 });
      await w.control.dropQueue(1, w.t.tenant, QUEUE, 'gen1');
      expect(await w.control.readDrain(w.t.tenant, QUEUE)).toEqual({ unrouted: 0, open: 0 });
      expect(await w.countKeys()).toBe(0);
      expect(await redis().call('hexists', CLUSTER_KEYS.parts, `${w.t.tenant}:${QUEUE}:0`)).toBe(0);
    });
  });
});
