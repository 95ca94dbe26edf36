import { randomUUID } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import { planRoutes } from './control-plan.ts';
import { createControlStore, FencedError } from './control-store.ts';
import { checkMarker, FORMAT, RedisFormatError, RedisInstanceError } from './format.ts';
import { createInboxRecovery } from './inbox-recovery.ts';
import { inboxMember } from './inbox-store.ts';
import { CLUSTER_KEYS, inboxKeys, integrationKeys, queueKeys, tenantKeys } from './keys.ts';
import { countCommand } from './testing/count-command.ts';
import { onEachRedis } from './testing/each-redis.ts';
import { createTenant, items, QUEUE, START_MS } from './testing/tenant.ts';

onEachRedis(redis => {
  const start = () => createTenant(redis());

  describe('fencing', () => {
    test('a deposed leader writes nothing, not even where the new one has not written yet', async () => {
      const t = start();
      await t.apply(t.routes({ x: {} }));
      await t.control.readTenant(t.tenant, 2);
      await expect(t.apply(t.routes({ x: { state: 'closed' } }))).rejects.toThrow(FencedError);
      await expect(t.activate('x', 'k')).rejects.toThrow(FencedError);
      await expect(t.deactivate('x', 'k')).rejects.toThrow(FencedError);
      await expect(t.control.wake(1, t.tenant, QUEUE, [t.inboxOf('x')])).rejects.toThrow(FencedError);
      expect(await redis().call('hget', integrationKeys(t.nameOf('x')).meta, 'state')).toBe('active');
      t.fence.epoch = 2;
      await t.apply(t.routes({ x: { state: 'closed' } }));
      expect(await redis().call('hget', integrationKeys(t.nameOf('x')).meta, 'state')).toBe('closed');
    });

    test('the fence outlives a stream that is made again', async () => {
      const t = start();
      t.fence.epoch = 5;
      await t.apply(t.routes({}));
      await t.apply(t.routes({}, { gen: 'gen2' }));
      const { meta } = queueKeys(t.tenant, QUEUE);
      expect(await redis().call('hget', meta, 'fence')).toBe('5');
      await expect(
        t.control.patch(4, [{ meta, ops: [{ command: 'HSET', key: meta, args: ['state', 'closing'] }] }]),
      ).rejects.toThrow(FencedError);
      await t.control.patch(5, [{ meta, ops: [{ command: 'DEL', key: meta, args: [] }] }]);
      expect(await redis().call('exists', meta)).toBe(0);
    });

    test('patch does only what it knows', async () => {
      const t = start();
      const { meta } = tenantKeys(t.tenant);
      const ops = [{ command: 'FLUSHALL' as 'DEL', key: meta, args: [] }];
      await expect(t.control.patch(1, [{ meta, ops }])).rejects.toThrow('patch does not do FLUSHALL');
    });

    test('a patch of many operations is written in parts', async () => {
      const t = start();
      const { meta, gates } = tenantKeys(t.tenant);
      const ops = Array.from({ length: 1_001 }, (_, i) => ({
        command: 'ZADD' as const,
        key: gates,
        args: [0, `k${i}`],
      }));
      await t.control.patch(1, [{ meta, ops }]);
      expect(await redis().call('zcard', gates)).toBe(1_001);
    });
  });

  test('lead: each epoch is above all before it; a Redis of another cluster is refused', async () => {
    const t = start();
    const had = await t.control.readCluster();
    const uid = had.uid ?? randomUUID();
    const first = (await t.control.lead(uid, 3, START_MS)) as { epoch: number };
    expect(first.epoch).toBeGreaterThanOrEqual(Math.max(START_MS, had.epoch + 1));
    // Also with a clock that was set back.
    expect(await t.control.lead(uid, 3, 5)).toEqual({ epoch: first.epoch + 1 });
    expect(await t.control.lead(uid, first.epoch + 100, 5)).toEqual({ epoch: first.epoch + 100 });
    expect(await t.control.lead('another', 0, START_MS * 2)).toEqual({ other: uid });
    await t.control.markClusterReady(first.epoch + 100);
    expect(await t.control.readCluster()).toEqual({ uid, ready: true, epoch: first.epoch + 100 });
    await t.control.enlist(first.epoch + 100, t.tenant);
    expect(await redis().call('sismember', CLUSTER_KEYS.tenants, t.tenant)).toBe(1);
  });

  test('lead: marks the format of the data, and refuses data of a newer one without changing it', async () => {
    const t = start();
    const { uid = randomUUID() } = await t.control.readCluster();
    const readMeta = () => redis().call('hgetall', CLUSTER_KEYS.meta);
    await t.control.lead(uid, 3, START_MS);
    expect(await redis().call('hget', CLUSTER_KEYS.meta, 'format')).toBe(String(FORMAT));
    await checkMarker(redis(), '');
    await redis().call('hset', CLUSTER_KEYS.meta, 'format', FORMAT + 1);
    onTestFinished(async () => {
      await redis().call('hset', CLUSTER_KEYS.meta, 'format', FORMAT);
    });
    const before = await readMeta();
    const message = `the data has format ${FORMAT + 1}, but this version of Sluice reads formats up to ${FORMAT}. Use the version that wrote the data, or a newer one`;
    await expect(t.control.lead(uid, 3, START_MS)).rejects.toThrow(new RedisFormatError(FORMAT + 1));
    await expect(checkMarker(redis(), '')).rejects.toThrow(message);
    expect(await readMeta()).toEqual(before);
  });

  test('lead: marks whose data it is, and refuses that of another installation without changing it', async () => {
    const readMeta = () => redis().call('hgetall', CLUSTER_KEYS.meta);
    const before = (await readMeta()) as string[];
    onTestFinished(async () => {
      await redis().call('del', CLUSTER_KEYS.meta);
      if (before.length > 0) await redis().call('hset', CLUSTER_KEYS.meta, ...before);
    });
    const uid = randomUUID();
    const controls = { blue: createControlStore(redis(), '', 'blue'), default: createControlStore(redis()) };
    for (const [ours, theirs, own, found] of [
      ['blue', 'default', '', 'blue'],
      ['default', 'blue', 'blue', ''],
    ] as const) {
      await redis().call('del', CLUSTER_KEYS.meta);
      await checkMarker(redis(), own);
      await controls[ours].lead(uid, 3, START_MS);
      await controls[ours].lead(uid, 4, START_MS);
      const marked = await readMeta();
      await checkMarker(redis(), found);
      await expect(controls[theirs].lead(uid, 5, START_MS)).rejects.toThrow(new RedisInstanceError(found, own));
      await expect(checkMarker(redis(), own)).rejects.toThrow(new RedisInstanceError(found, own));
      expect(await readMeta()).toEqual(marked);
    }
    expect(new RedisInstanceError('', 'blue').message).toBe(
      'the data belongs to the default installation, but SLUICE_INSTANCE makes this the installation blue. Set SLUICE_REDIS_URL to a separate Redis for each installation',
    );
  });

  test('lead: data of a version that did not mark whose it is belongs to the default installation', async () => {
    const before = (await redis().call('hgetall', CLUSTER_KEYS.meta)) as string[];
    onTestFinished(async () => {
      await redis().call('del', CLUSTER_KEYS.meta);
      if (before.length > 0) await redis().call('hset', CLUSTER_KEYS.meta, ...before);
    });
    const uid = randomUUID();
    await createControlStore(redis()).lead(uid, 3, START_MS);
    await redis().call('hdel', CLUSTER_KEYS.meta, 'instance');
    await expect(createControlStore(redis(), '', 'blue').lead(uid, 4, START_MS)).rejects.toThrow(
      'default installation',
    );
    await expect(checkMarker(redis(), 'blue')).rejects.toThrow('default installation');
    await checkMarker(redis(), '');
    await createControlStore(redis()).lead(uid, 5, START_MS);
    expect(await redis().call('hget', CLUSTER_KEYS.meta, 'instance')).toBe('');
  });

  describe('routes', () => {
    test('what was written is read back, and then there is nothing more to write', async () => {
      const t = start();
      const want = t.routes({
        x: {},
        y: { state: 'pending', sub: { route: 'paused', send: 'held', unordered: true, endpoint: '', cap: 3 } },
        z: { sinceMs: 0, sub: { maxPerSecond: 20, enabledMs: 7 } },
      });
      await t.apply(want);
      const stored = await t.control.readTenant(t.tenant, 1);
      expect(stored.routes).toEqual({
        ...want,
        integrations: {
          ...want.integrations,
          [t.nameOf('y')]: { ...want.integrations[t.nameOf('y')], sinceMs: 0 },
        },
      });
      const again = planRoutes(stored, want, 1);
      expect(again).toMatchObject({ patches: [], ready: [], opened: [], queuesTouched: [] });
    });

    test('what no object wants any more is closed, and keeps what lies in it', async () => {
      const t = start();
      await t.apply(t.routes({ x: {} }));
      await t.activate('x', 'k');
      const [entry] = await t.ingest(['k']);
      const inbox = t.inboxOf('x');
      await t.inboxes.route(inbox, t.nowMs(), START_MS, 'gen1', '', items([entry as { id: string; groupKey: string }]));
      await t.apply({ ...t.routes({}, null), keys: {} });
      const { routes } = await t.control.readTenant(t.tenant, 1);
      expect(routes.queues[QUEUE]).toMatchObject({ state: 'closing' });
      expect(routes.integrations[inbox.integration]).toMatchObject({
        state: 'closed',
        subscriptions: { [inbox.sub]: { route: 'closed', send: 'held' } },
      });
      expect(await redis().call('zcard', inboxKeys(inbox.integration, inbox.sub, inbox.inc).pending)).toBe(1);
      expect((await t.queues.lookup(t.queue, []))?.subscriptions.size).toBe(0);
      expect(await t.control.readDrain(t.tenant, QUEUE)).toEqual({ unrouted: 1, open: 0 });
    });

    test('a subscription that is made again under its name starts anew', async () => {
      const t = start();
      await t.apply(t.routes({ x: {} }));
      await t.activate('x', 'k');
      const [entry] = await t.ingest(['k']);
      await t.inboxes.route(t.inboxOf('x'), t.nowMs(), START_MS, 'gen1', '', items([entry as never]));
      await t.apply(t.routes({}));
      await t.control.dropInbox(1, t.tenant, t.inboxOf('x'), 60_000);
      await t.apply(t.routes({ x: { sub: { inc: 'inc2', sinceMs: START_MS } } }));
      const key = integrationKeys(t.nameOf('x')).sub('sub_x');
      const fields = await redis().readHash(key);
      expect(fields).toMatchObject({ inc: 'inc2', since: String(START_MS) });
      expect(fields.last).toBeUndefined();
      expect(await redis().call('pttl', key)).toBe(-1);
      expect(await redis().call('pttl', inboxKeys(t.nameOf('x'), 'sub_x', 'inc1').pending)).toBeGreaterThan(0);
    });

    test('dropInbox with nothing to keep, dropQueue: nothing is left that they named', async () => {
      const t = start();
      await t.apply(t.routes({ x: {} }));
      await t.activate('x', 'k');
      const [entry] = await t.ingest(['k']);
      const inbox = t.inboxOf('x');
      await t.inboxes.route(inbox, t.nowMs(), START_MS, 'gen1', '', items([entry as never]));
      const deleted = await countCommand(redis(), 'del');
      await t.control.dropInbox(1, t.tenant, inbox, 0);
      await t.control.dropQueue(1, t.tenant, QUEUE, 'gen1');
      // Whatever lies in them: nobody waits until Redis has freed it.
      expect(await countCommand(redis(), 'del')).toBe(deleted);
      const x = inboxKeys(inbox.integration, inbox.sub, inbox.inc);
      const q = queueKeys(t.tenant, QUEUE, 'gen1');
      const left = [
        x.log,
        x.pending,
        x.due,
        integrationKeys(inbox.integration).sub(inbox.sub),
        q.meta,
        q.events,
        q.bodies,
      ];
      for (const key of left) expect([key, await redis().call('exists', key)]).toEqual([key, 0]);
      const { routes } = await t.control.readTenant(t.tenant, 1);
      expect(routes.queues).toEqual({});
      expect(routes.integrations[inbox.integration]?.subscriptions).toEqual({});
    });
  });

  describe('a queue is drained', () => {
    const DRAINED = { unrouted: 0, open: 0 };
    const CUT = `${START_MS + 1}-0`;

    test('when retention removed what a suspended subscription was never routed, but not before', async () => {
      const t = start();
      await t.apply(t.routes({ x: { sub: { route: 'paused', send: 'held' } } }));
      const [entry] = await t.ingest(['k']);
      const owned = await t.own();
      const to = (entry as { id: string }).id;
      const batch = { counters: new Map(), why: [], from: '0-0', to, behind: [inboxMember(t.inboxOf('x'))], wake: [] };
      await t.queues.next(owned, t.nowMs(), 10, batch);
      expect(await t.control.readDrain(t.tenant, QUEUE)).toEqual({ unrouted: 1, open: 0 });
      await t.queues.trim(owned, t.nowMs(), CUT, [inboxMember(t.inboxOf('x'))]);
      expect((await t.control.readBehind(t.tenant, QUEUE)).size).toBe(1);
      expect(await t.control.readDrain(t.tenant, QUEUE)).toEqual(DRAINED);
    });

    test('when it has no events, also with an open test event', async () => {
      const t = start();
      await t.apply(t.routes({ x: {} }));
      const lower = async () => {};
      const recovery = createInboxRecovery({ redis: redis(), nowMs: t.nowMs, lower, pageEvents: 10 });
      expect(await recovery.sendTest(t.inboxOf('x'))).toMatchObject({ answer: 'OK' });
      await t.apply(t.routes({ x: { sub: { route: 'paused', send: 'held' } } }));
      expect(await t.control.readDrain(t.tenant, QUEUE)).toEqual(DRAINED);
    });

    test('not with an event that was routed and is not delivered', async () => {
      const t = start();
      await t.apply(t.routes({ x: {} }));
      await t.activate('x', 'k');
      const [entry] = await t.ingest(['k']);
      const owned = await t.own();
      await t.inboxes.route(t.inboxOf('x'), t.nowMs(), owned.epoch, 'gen1', '', items([entry as never]));
      const to = (entry as { id: string }).id;
      const batch = { counters: new Map(), why: [], from: '0-0', to, behind: [], wake: [] };
      await t.queues.next(owned, t.nowMs(), 10, batch);
      expect(await t.control.readDrain(t.tenant, QUEUE)).toEqual({ unrouted: 0, open: 1 });
    });

    test('not where its generation is lost: nobody knows its events', async () => {
      const t = start();
      await t.apply(t.routes({ x: { sub: { route: 'paused' } } }));
      await t.ingest(['k']);
      const q = queueKeys(t.tenant, QUEUE);
      await redis().call('hset', q.behind, inboxMember(t.inboxOf('x')), '0-0');
      await redis().call('hdel', q.meta, 'gen');
      expect(await t.control.readDrain(t.tenant, QUEUE)).toEqual({ unrouted: 1, open: 0 });
    });
  });

  test('what never was there is closed and dropped without a write: objects may name anything', async () => {
    const t = start();
    const inbox = t.inboxOf('nobody');
    expect(await t.control.setActivation(1, t.nowMs(), inbox.integration, 'k', null, [])).toBe(false);
    for (const keepMs of [0, 60_000]) await t.control.dropInbox(1, t.tenant, inbox, keepMs);
    for (const { meta } of [integrationKeys(inbox.integration), tenantKeys(t.tenant)]) {
      expect([meta, await redis().call('exists', meta)]).toEqual([meta, 0]);
    }
  });

  test('an activation keeps its since, and says whether anything changed', async () => {
    const t = start();
    await t.apply(t.routes({ x: {} }));
    const set = (sinceMs: number | null) =>
      t.control.setActivation(1, t.nowMs(), t.nameOf('x'), '__proto__', sinceMs, []);
    expect(await set(5)).toBe(true);
    expect(await set(6)).toBe(false);
    expect(await t.control.readActivations(t.nameOf('x'))).toEqual(new Map([['__proto__', 5]]));
    expect(await set(null)).toBe(true);
    expect(await set(null)).toBe(false);
    expect(await t.control.readActivations(t.nameOf('x'))).toEqual(new Map());
  });

  test('more subscriptions than one script takes are woken', async () => {
    const t = start();
    await t.apply(t.routes({}));
    const many = Array.from({ length: 9_000 }, (_, i) => ({ integration: `int_${i}`, sub: 'sub', inc: 'i' }));
    await t.control.wake(1, t.tenant, QUEUE, many);
    expect(await redis().call('scard', queueKeys(t.tenant, QUEUE).wake)).toBe(9_000);
  });
});
