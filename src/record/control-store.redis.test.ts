import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { RedisClient } from '../redis/client.ts';
import { checkMarker, FORMAT, RedisFormatError, RedisInstanceError } from '../redis/format.ts';
import { CLUSTER_KEYS, integrationKeys, queueKeys, tenantKeys } from '../redis/keys.ts';
import { keysVersionOf } from '../redis/keys-version.ts';
import { countCommand } from '../redis/testing/count-command.ts';
import { onEachRedis } from '../redis/testing/each-redis.ts';
import { createControlAudit } from './control-audit.ts';
import { planRoutes } from './control-plan.ts';
import { createControlRecord, FencedError } from './control-store.ts';
import { createTenant, QUEUE, START_MS } from './testing/tenant.ts';

onEachRedis(redis => {
  const start = () => createTenant(redis());

  describe('fencing', () => {
    test('a deposed leader does not write anything, even where the new leader has not written yet', async () => {
      const t = start();
      await t.apply(t.routes({ x: {} }));
      await t.control.readTenant(t.tenant, 2);
      await expect(t.apply(t.routes({ x: { state: 'closed' } }))).rejects.toThrow(FencedError);
      await expect(t.activate('x', 'k')).rejects.toThrow(FencedError);
      await expect(t.deactivate('x', 'k')).rejects.toThrow(FencedError);
      await expect(t.control.forgetInbox(1, t.tenant, t.inboxOf('x'))).rejects.toThrow(FencedError);
      await expect(t.control.forgetQueue(1, t.tenant, QUEUE)).rejects.toThrow(FencedError);
      expect(await redis().call('hget', integrationKeys(t.nameOf('x')).meta, 'state')).toBe('active');
      t.fence.epoch = 2;
      await t.apply(t.routes({ x: { state: 'closed' } }));
      expect(await redis().call('hget', integrationKeys(t.nameOf('x')).meta, 'state')).toBe('closed');
    });

    test('the fence remains after a stream is recreated', async () => {
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

    test('patch only accepts known operations', async () => {
      const t = start();
      const { meta } = tenantKeys(t.tenant);
      const ops = [{ command: 'FLUSHALL' as 'DEL', key: meta, args: [] }];
      await expect(t.control.patch(1, [{ meta, ops }])).rejects.toThrow('patch does not do FLUSHALL');
    });

    test('a patch of many operations is written in parts', async () => {
      const t = start();
      const { meta, index } = tenantKeys(t.tenant);
      const ops = Array.from({ length: 1_001 }, (_, i) => ({
        command: 'HSET' as const,
        key: index,
        args: [`k${i}`, ''],
      }));
      await t.control.patch(1, [{ meta, ops }]);
      expect(await redis().call('hlen', index)).toBe(1_001);
    });

    test('a patch of commands with many fields is written in parts', async () => {
      const t = start();
      const { meta, index } = tenantKeys(t.tenant);
      const ops = Array.from({ length: 30 }, (_, i) => ({
        command: 'HSET' as const,
        key: index,
        args: Array.from({ length: 500 }, (_each, at) => `${i}:${at}`),
      }));
      const sizes: number[] = [];
      const client: RedisClient = {
        ...redis(),
        run(name, keys, args) {
          if (name === 'patch') sizes.push(args.length);
          return redis().run(name, keys, args);
        },
      };
      await createControlRecord(client).patch(1, [{ meta, ops }]);
      expect(await redis().call('hlen', index)).toBe(30 * 250);
      expect(await redis().call('hget', meta, 'fence')).toBe('1');
      expect(Math.max(...sizes)).toBeLessThan(2_100);
    });
  });

  describe('the version of the ingress keys', () => {
    const read = async () => keysVersionOf(await redis().readHash(CLUSTER_KEYS.meta), 0)?.version;

    test('changes with a new leader, and without a Cluster in the same command as a key', async () => {
      const t = start();
      const { uid = randomUUID() } = await t.control.readCluster();
      const leadAgain = async () => {
        const led = (await t.control.lead(uid, 3, START_MS)) as { epoch: number };
        t.fence.epoch = led.epoch;
        return read();
      };
      const first = await leadAgain();
      const led = await leadAgain();
      expect(led).toEqual(expect.any(String));
      expect(led).not.toBe(first);
      await t.apply(t.routes({}));
      expect(await read()).toBe(led);
      const { meta, keys } = tenantKeys(t.tenant);
      const versions = new Set([led]);
      for (const [command, ...args] of [['HSET', 'sha', ''], ['HSET', 'sha', '5'], ['HDEL', 'sha'], ['DEL']] as const) {
        const sent = redis().commandsSent();
        await t.control.patch(t.fence.epoch, [{ meta, ops: [{ command, key: keys, args }] }]);
        expect(redis().commandsSent() - sent).toBe(1);
        versions.add(await read());
      }
      const delist = { command: 'SREM' as const, key: CLUSTER_KEYS.tenants, args: [t.tenant] };
      await t.control.patch(t.fence.epoch, [{ meta: CLUSTER_KEYS.meta, ops: [delist] }]);
      versions.add(await read());
      expect(versions.size).toBe(redis().cluster ? 1 : 6);
    });

    test('is never repeated, even if a failover has lost the last epoch', async () => {
      const t = start();
      const { uid = randomUUID() } = await t.control.readCluster();
      const { epoch } = (await t.control.lead(uid, 3, START_MS)) as { epoch: number };
      const first = await read();
      await redis().call('hset', CLUSTER_KEYS.meta, 'epoch', epoch - 1);
      expect(await t.control.lead(uid, 3, 5)).toMatchObject({ epoch });
      expect(await read()).not.toBe(first);
    });

    test('changes when a leader has raised all fences, because a former one may not have changed it', async () => {
      const t = start();
      const { uid = randomUUID() } = await t.control.readCluster();
      const { epoch } = (await t.control.lead(uid, 3, START_MS)) as { epoch: number };
      const first = await read();
      await t.control.markClusterReady(epoch);
      expect((await read()) === first).toBe(redis().cluster);
    });

    test('does not change if a deposed leader is refused', async () => {
      const t = start();
      await t.apply(t.routes({}));
      await t.control.readTenant(t.tenant, 2);
      const before = await redis().readHash(CLUSTER_KEYS.meta);
      const ops = [{ command: 'HDEL' as const, key: tenantKeys(t.tenant).keys, args: ['sha'] }];
      await expect(t.control.patch(1, [{ meta: tenantKeys(t.tenant).meta, ops }])).rejects.toThrow(FencedError);
      expect(await redis().readHash(CLUSTER_KEYS.meta)).toEqual(before);
    });
  });

  test('lead: each epoch is higher than all before it; a Redis of another cluster is refused', async () => {
    const t = start();
    const had = await t.control.readCluster();
    const uid = had.uid ?? randomUUID();
    const first = (await t.control.lead(uid, 3, START_MS)) as { epoch: number };
    expect(first.epoch).toBeGreaterThanOrEqual(Math.max(START_MS, had.epoch + 1));
    // This is also true if the clock was set back.
    expect(await t.control.lead(uid, 3, 5)).toMatchObject({ epoch: first.epoch + 1 });
    expect(await t.control.lead(uid, first.epoch + 100, 5)).toMatchObject({ epoch: first.epoch + 100 });
    expect(await t.control.lead('another', 0, START_MS * 2)).toEqual({ other: uid });
    await t.control.markClusterReady(first.epoch + 100);
    expect(await t.control.readCluster()).toEqual({ uid, ready: true, epoch: first.epoch + 100 });
    await t.control.enlist(first.epoch + 100, t.tenant);
    expect(await redis().call('sismember', CLUSTER_KEYS.tenants, t.tenant)).toBe(1);
  });

  test('lead: docs/operations.md: another cluster uses the data after the id of the former one was removed', async () => {
    const t = start();
    const { uid = randomUUID() } = await t.control.readCluster();
    const former = (await t.control.lead(uid, 3, START_MS)) as { epoch: number; store: string };
    const page = await readFile(join(import.meta.dirname, '..', '..', 'docs', 'operations.md'), 'utf8');
    const [, ...command] = /`(HDEL) (\S+) (\S+)`/.exec(page) ?? [];
    expect(await redis().call(...(command as [string, string, string]))).toBe(1);
    onTestFinished(async () => {
      await redis().call('hset', CLUSTER_KEYS.meta, 'uid', uid);
    });
    expect(await t.control.lead('another', 0, START_MS)).toEqual({ ...former, epoch: former.epoch + 1 });
    expect(await t.control.lead(uid, 4, START_MS)).toEqual({ other: 'another' });
  });

  test('lead: marks the format of the data, and refuses data of a newer format without changing it', async () => {
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
    const message = `the data has format ${FORMAT + 1}, but this version of Sluice reads format ${FORMAT}. Use the version that wrote the data, or a newer one`;
    await expect(t.control.lead(uid, 3, START_MS)).rejects.toThrow(new RedisFormatError(FORMAT + 1));
    await expect(checkMarker(redis(), '')).rejects.toThrow(message);
    expect(await readMeta()).toEqual(before);
  });

  test('lead: names the Redis once, and again after its data was lost', async () => {
    const before = (await redis().call('hgetall', CLUSTER_KEYS.meta)) as string[];
    onTestFinished(async () => {
      await redis().call('del', CLUSTER_KEYS.meta);
      if (before.length > 0) await redis().call('hset', CLUSTER_KEYS.meta, ...before);
    });
    const record = createControlRecord(redis());
    const leadOnce = async () => {
      const answer = await record.lead('uid', 3, START_MS);
      return 'epoch' in answer ? answer.store : undefined;
    };
    await redis().call('del', CLUSTER_KEYS.meta);
    expect(await record.readStore()).toBeUndefined();
    const name = await leadOnce();
    expect(name).toMatch(/^[0-9a-f-]{36}$/);
    expect([await leadOnce(), await record.readStore()]).toEqual([name, name]);
    await redis().call('del', CLUSTER_KEYS.meta);
    expect(await leadOnce()).not.toBe(name);
  });

  test('marks data that was written after a loss, which is incomplete until a controller leads', async () => {
    const before = (await redis().call('hgetall', CLUSTER_KEYS.meta)) as string[];
    onTestFinished(async () => {
      await redis().call('del', CLUSTER_KEYS.meta);
      if (before.length > 0) await redis().call('hset', CLUSTER_KEYS.meta, ...before);
    });
    const blue = createControlRecord(redis(), undefined, 'blue');
    await redis().call('del', CLUSTER_KEYS.meta);
    await blue.markClusterReady(5);
    expect(await redis().readHash(CLUSTER_KEYS.meta)).toEqual({
      fence: '5',
      ready: '1',
      format: String(FORMAT),
      instance: 'blue',
      ...(redis().cluster ? {} : { keys: expect.stringMatching(/^5 /) }),
    });
    expect((await blue.readCluster()).ready).toBe(false);
    await checkMarker(redis(), 'blue');
    await expect(checkMarker(redis(), '')).rejects.toThrow(RedisInstanceError);
    await expect(createControlRecord(redis()).lead('uid', 3, START_MS)).rejects.toThrow(RedisInstanceError);
    await redis().call('hset', CLUSTER_KEYS.meta, 'format', FORMAT + 1);
    await blue.markClusterReady(6);
    await expect(checkMarker(redis(), 'blue')).rejects.toThrow(RedisFormatError);
    await expect(blue.lead('uid', 3, START_MS)).rejects.toThrow(RedisFormatError);
  });

  test('lead: marks the owner of the data, and refuses another installation', async () => {
    const readMeta = () => redis().call('hgetall', CLUSTER_KEYS.meta);
    const before = (await readMeta()) as string[];
    onTestFinished(async () => {
      await redis().call('del', CLUSTER_KEYS.meta);
      if (before.length > 0) await redis().call('hset', CLUSTER_KEYS.meta, ...before);
    });
    const uid = randomUUID();
    const controls = { blue: createControlRecord(redis(), undefined, 'blue'), default: createControlRecord(redis()) };
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

  test('lead: data without an owner belongs to the default installation', async () => {
    const before = (await redis().call('hgetall', CLUSTER_KEYS.meta)) as string[];
    onTestFinished(async () => {
      await redis().call('del', CLUSTER_KEYS.meta);
      if (before.length > 0) await redis().call('hset', CLUSTER_KEYS.meta, ...before);
    });
    const uid = randomUUID();
    await createControlRecord(redis()).lead(uid, 3, START_MS);
    await redis().call('hdel', CLUSTER_KEYS.meta, 'instance');
    await expect(createControlRecord(redis(), undefined, 'blue').lead(uid, 4, START_MS)).rejects.toThrow(
      'default installation',
    );
    await expect(checkMarker(redis(), 'blue')).rejects.toThrow('default installation');
    await checkMarker(redis(), '');
    await createControlRecord(redis()).lead(uid, 5, START_MS);
    expect(await redis().call('hget', CLUSTER_KEYS.meta, 'instance')).toBe('');
  });

  describe('routes', () => {
    test('returns the written routes, and nothing more is written', async () => {
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
      expect(planRoutes(stored, want)).toEqual({ patches: [], ready: [] });
    });

    test('closes and keeps routes without an object', async () => {
      const t = start();
      await t.apply(t.routes({ x: {} }));
      const { subs } = tenantKeys(t.tenant);
      expect(await redis().call('hlen', subs(QUEUE))).toBe(1);
      await t.apply({ ...t.routes({}, null), keys: {} });
      const { routes } = await t.control.readTenant(t.tenant, 1);
      expect(routes.queues[QUEUE]).toMatchObject({ state: 'closing' });
      const { integration, sub } = t.inboxOf('x');
      expect(routes.integrations[integration]).toMatchObject({
        state: 'closed',
        subscriptions: { [sub]: { route: 'closed', send: 'held' } },
      });
      expect(await redis().call('exists', subs(QUEUE))).toBe(0);
    });

    test('a subscription with the same name starts again', async () => {
      const t = start();
      await t.apply(t.routes({ x: { sub: { maxPerSecond: 5, endpoint: 'of the first' } } }));
      await t.apply(t.routes({}));
      await t.control.forgetInbox(1, t.tenant, t.inboxOf('x'));
      await t.apply(t.routes({ x: { sub: { inc: 'inc2', sinceMs: START_MS } } }));
      const fields = await redis().readHash(integrationKeys(t.nameOf('x')).sub('sub_x'));
      expect(fields).toMatchObject({ inc: 'inc2', since: String(START_MS), cap: '64', endpoint: 'sealed' });
    });

    test('forgetInbox and forgetQueue remove everything that they referenced', async () => {
      const t = start();
      await t.apply(t.routes({ x: {} }));
      const inbox = t.inboxOf('x');
      const deleted = await countCommand(redis(), 'del');
      await t.control.forgetInbox(1, t.tenant, inbox);
      await t.control.forgetQueue(1, t.tenant, QUEUE);
      // The duration does not depend on the size because callers never wait until Redis has freed memory.
      expect(await countCommand(redis(), 'del')).toBe(deleted);
      const { subs } = tenantKeys(t.tenant);
      for (const key of [
        integrationKeys(inbox.integration).sub(inbox.sub),
        queueKeys(t.tenant, QUEUE).meta,
        subs(QUEUE),
      ]) {
        expect([key, await redis().call('exists', key)]).toEqual([key, 0]);
      }
      const { routes } = await t.control.readTenant(t.tenant, 1);
      expect(routes.queues).toEqual({});
      expect(routes.integrations[inbox.integration]?.subscriptions).toEqual({});
    });
  });

  test('closes and removes unknown names without a write', async () => {
    const t = start();
    const inbox = t.inboxOf('nobody');
    expect(await t.control.setActivation(1, inbox.integration, 'k', null)).toBe(false);
    await t.control.forgetInbox(1, t.tenant, inbox);
    for (const { meta } of [integrationKeys(inbox.integration), tenantKeys(t.tenant)]) {
      expect([meta, await redis().call('exists', meta)]).toEqual([meta, 0]);
    }
  });

  test('an activation keeps its time, and returns whether it has changed', async () => {
    const t = start();
    await t.apply(t.routes({ x: {} }));
    const set = (sinceMs: number | null) => t.control.setActivation(1, t.nameOf('x'), '__proto__', sinceMs);
    expect(await set(5)).toBe(true);
    expect(await set(6)).toBe(false);
    expect(await t.control.readActivations(t.nameOf('x'))).toEqual(new Map([['__proto__', 5]]));
    expect(await set(null)).toBe(true);
    expect(await set(null)).toBe(false);
    expect(await t.control.readActivations(t.nameOf('x'))).toEqual(new Map());
  });

  describe('large hashes', () => {
    const names = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}${i}`);
    async function put(key: string, fields: readonly string[]): Promise<void> {
      for (let at = 0; at < fields.length; at += 1_000) {
        await redis().call('hset', key, ...fields.slice(at, at + 1_000).flatMap(field => [field, '5']));
      }
    }
    /** Returns a client that calls `onReply` after each page, and the number of fields in each reply. */
    function watching(onReply: (pages: number) => Promise<void> = async () => {}) {
      const sizes: number[] = [];
      const count = (hashes: readonly (string[] | number)[]) =>
        hashes.reduce<number>((sum, hash) => sum + (typeof hash === 'number' ? 0 : hash.length / 2), 0);
      const client: RedisClient = {
        ...redis(),
        async run(name, keys, args) {
          const reply = await redis().run(name, keys, args);
          if (name === 'hashes') sizes.push(count(reply as string[][]));
          return reply;
        },
        async call(command, ...args) {
          const reply = await redis().call(command, ...args);
          if (command !== 'hscan') return reply;
          sizes.push(count([(reply as [string, string[]])[1]]));
          await onReply(sizes.length);
          return reply;
        },
      };
      return { client, sizes };
    }

    test('activations that stay open are read completely while many others are opened and closed', async () => {
      const t = start();
      await t.apply(t.routes({ x: {} }));
      const { act } = integrationKeys(t.nameOf('x'));
      const stays = names('stays', 3_000);
      await put(act, [...stays, ...names('closed', 900)]);
      const { client, sizes } = watching(async pages => {
        if (pages > 1) return;
        await redis().call('hdel', act, ...names('closed', 900));
        // Redis uses a larger table for this.
        await put(act, names('opened', 6_000));
      });
      const read = await createControlRecord(client).readActivations(t.nameOf('x'));
      expect(stays.filter(groupKey => read.get(groupKey) !== 5)).toEqual([]);
      expect(read.size).toBe(9_000);
      expect(Math.max(...sizes)).toBeLessThan(2_000);
    });

    test('the indexes of tenants are read with a limited number of fields in each call', async () => {
      const tenants = [700, 0, 800, 2_500, 20].map(count => ({ ...start(), fields: names('q:', count) }));
      for (const { tenant, fields } of tenants) await put(tenantKeys(tenant).index, fields);
      const { client, sizes } = watching();
      const audit = createControlAudit(client, () => Promise.resolve());
      const indexes = await audit.readIndexes(tenants.map(({ tenant }) => tenant));
      for (const { tenant, fields } of tenants) {
        expect(indexes.get(tenant)).toEqual(Object.fromEntries(fields.map(field => [field, '5'])));
      }
      expect(Math.max(...sizes)).toBeLessThan(2_000);
    });

    test('hashes that do not fit into a call are read by the next one together', async () => {
      const { tenant } = start();
      const t = tenantKeys(tenant);
      const streams = names('stream', 24);
      await put(
        t.index,
        streams.map(queue => `q:${queue}`),
      );
      for (const queue of streams) await put(t.subs(queue), names('int_', 200));
      const { client, sizes } = watching();
      const { stored } = await createControlAudit(client, () => Promise.resolve()).readRoutes(tenant, []);
      for (const queue of streams) expect(Object.keys(stored.hashes?.get(t.subs(queue)) ?? {})).toHaveLength(200);
      expect(Math.max(...sizes)).toBeLessThanOrEqual(1_000);
      // One call for the index, and five for 4,800 fields. In a Cluster, the streams themselves are in other slots.
      expect(sizes.length).toBeLessThan(redis().cluster ? 6 + 24 + 1 : 8);
    });
  });
});
