import { beforeEach, describe, expect, test } from 'vitest';
import { type AuditedTenant, createAuditedTenant } from '../../../test/support/controller/audited-tenant.ts';
import { generationOf, tenantId } from '../../core/ids/ids.ts';
import type { AnyObject } from '../../kube/object.ts';
import type { Store } from '../../kube/store.ts';
import { FencedError } from '../../record/control-store.ts';
import { CLUSTER_KEYS, integrationKeys, queueKeys, tenantKeys } from '../../redis/keys.ts';
import { countCommand } from '../../redis/testing/count-command.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';

onEachRedis(redis => {
  let t: AuditedTenant;

  const keys = () => ({
    t: tenantKeys(t.tenant),
    q: queueKeys(t.tenant, 'orders'),
    i: integrationKeys(t.integration),
  });
  const exists = async (...names: string[]) =>
    Promise.all(names.map(async name => (await redis().call('exists', name)) === 1));

  beforeEach(async () => {
    t = await createAuditedTenant(redis());
    await t.begin(['red']);
  });

  /** Runs two passes. Leftover data is only removed if it is found again. */
  async function sweep(passes = 2): Promise<void> {
    for (let n = 0; n < passes; n++) {
      await t.garbage.pass(new Set([t.tenant]));
      await t.work();
    }
  }

  /** Removes the objects without their finalizers, and compiles the routes from the remaining objects. */
  async function lose(...kinds: ('stream' | 'integration' | 'subscription' | 'workspace')[]): Promise<void> {
    const kindOf = {
      stream: 'CatalogStream',
      integration: 'Integration',
      subscription: 'Subscription',
      workspace: 'Workspace',
    } as const;
    for (const kind of kinds) t.remove(kindOf[kind], t.objects[kind]);
    if (kinds.includes('integration')) t.remove('Activation', t.activation('red'));
    t.tenants.forget([t.name]);
    await t.tenants.sync(t.name);
  }

  test('removes all data of a tenant that never existed and was only referenced by a deleted object', async () => {
    const { meta } = tenantKeys(tenantId('nowhere'));
    await t.tenants.sync('nowhere');
    expect(await exists(meta)).toEqual([true]);
    await sweep(1);
    expect(await exists(meta)).toEqual([false]);
    expect(await exists(keys().t.meta)).toEqual([true]);
  });

  describe('a queue without its stream', () => {
    test('is removed, and its stream can be created again', async () => {
      await lose('stream');
      expect(await redis().call('hget', keys().q.meta, 'state')).toBe('closing');
      await sweep(1);
      expect(await exists(keys().q.meta)).toEqual([true]);
      await sweep(1);
      expect(await exists(keys().q.meta)).toEqual([false]);
      expect(await redis().call('hexists', keys().t.index, 'q:orders')).toBe(0);
      expect(t.swept).toEqual(['queue']);
      t.put('CatalogStream', t.objects.stream);
      await t.tenants.sync(t.name);
      expect(await redis().call('hget', keys().q.meta, 'state')).toBe('open');
      expect(await redis().call('hget', keys().q.meta, 'ready')).toBe('1');
      expect(await t.look()).toEqual([]);
    });

    test('is kept if the quorum still has the stream', async () => {
      await lose('stream');
      t.actual.onRelist = () => t.put('CatalogStream', t.objects.stream);
      await sweep(3);
      expect(await exists(keys().q.meta)).toEqual([true]);
      expect(t.swept).toEqual([]);
    });

    test('is kept while it accepts events', async () => {
      t.remove('CatalogStream', t.objects.stream);
      await sweep(3);
      expect(await exists(keys().q.meta)).toEqual([true]);
    });
  });

  describe('an inbox without its subscription', () => {
    test('is removed, and can be created again', async () => {
      await lose('subscription');
      await sweep();
      expect(await exists(keys().i.sub(t.sub))).toEqual([false]);
      expect(t.swept).toEqual(['inbox']);
      t.put('Subscription', t.objects.subscription);
      await t.tenants.sync(t.name);
      expect(await redis().call('hget', keys().i.sub(t.sub), 'route')).toBe('open');
      expect(await t.look()).toEqual([]);
    });

    const named = (object: AnyObject, uid: string, name = object.metadata.name) =>
      ({ ...object, metadata: { ...object.metadata, name, uid } }) as never;
    /** Leaves an integration without an object, so that something is removed. */
    async function loseBob(): Promise<void> {
      const bob = named(t.objects.integration, 'bob', 'bob');
      t.put('Integration', bob);
      await t.tenants.sync(t.name);
      t.remove('Integration', bob);
      await t.tenants.sync(t.name);
    }

    test('is kept if its Subscription is created and closed while other data is being removed', async () => {
      await lose('subscription');
      await sweep();
      await loseBob();
      await sweep(1);
      const { readRoutes } = t.store;
      let applied: Promise<void> | undefined;
      async function createAndClose(): Promise<void> {
        t.put('Subscription', named(t.objects.subscription, 'created'));
        await t.tenants.sync(t.name);
        t.put('Integration', { ...t.objects.integration, spec: { workspace: t.partner, revoked: true } } as never);
        await t.tenants.sync(t.name);
      }
      t.actual.onRelist = () => {
        Object.assign(t.store, {
          readRoutes: async (...args: Parameters<typeof readRoutes>) => {
            await (applied ??= createAndClose());
            return readRoutes(...args);
          },
        });
      };
      await sweep(1);
      expect(t.swept).toEqual(['inbox', 'integration']);
      expect(await redis().call('hmget', keys().i.sub(t.sub), 'inc', 'route')).toEqual([
        generationOf('created'),
        'closed',
      ]);
    });

    test('is kept if its Subscription is recreated while the objects are read in slices', async () => {
      await loseBob();
      const { store } = t.caches.Subscription;
      const { eachByIndex } = store;
      let times = 0;
      let applied: Promise<void> | undefined;
      Object.assign(store, {
        *eachByIndex(...args: Parameters<typeof eachByIndex>) {
          for (const each of eachByIndex(...args)) {
            yield each;
            t.put('Subscription', named(t.objects.subscription, `again ${++times}`));
            applied = t.tenants.sync(t.name);
          }
        },
      });
      await sweep();
      Object.assign(store, { eachByIndex });
      await applied;
      await t.tenants.sync(t.name);
      expect(times).toBeGreaterThan(3);
      expect(t.swept).toEqual(['integration']);
      expect(await redis().call('hmget', keys().i.sub(t.sub), 'inc', 'route')).toEqual([
        generationOf(`again ${times}`),
        'open',
      ]);
      expect(await t.look()).toEqual([]);
    });

    test('is kept with all of its events while there is a Subscription that is not admitted', async () => {
      t.put('Integration', { ...t.objects.integration, spec: { workspace: t.partner, revoked: true } } as never);
      await t.tenants.sync(t.name);
      expect(await redis().call('hget', keys().i.sub(t.sub), 'route')).toBe('closed');
      await sweep(3);
      expect(await exists(keys().i.sub(t.sub))).toEqual([true]);
    });
  });

  test('is removed before its integration', async () => {
    await lose('integration', 'subscription');
    await sweep();
    expect(await exists(keys().i.meta, keys().i.act)).toEqual([false, false]);
    expect(t.swept).toEqual(['inbox', 'integration']);
    expect(await t.look()).toEqual([]);
  });

  test('a deleted tenant leaves no data, and deleting it does not wait until Redis has freed the memory', async () => {
    await lose('workspace', 'stream', 'integration', 'subscription');
    const deleted = await countCommand(redis(), 'del');
    await sweep(3);
    expect(await countCommand(redis(), 'del')).toBe(deleted);
    const { meta, keys: ingress, index } = keys().t;
    expect(await exists(meta, ingress, index, keys().q.meta, keys().i.meta)).toEqual(Array(5).fill(false));
    expect(await redis().call('sismember', CLUSTER_KEYS.tenants, t.tenant)).toBe(0);
    await sweep(1);
    expect(t.tenants.names()).toEqual([]);
  });

  test('a tenant without an object is closed and removed', async () => {
    const gone = t;
    // A different leader, which has never seen any of these objects.
    t = await createAuditedTenant(redis());
    t.fence.epoch = 2;
    const listed = new Set([gone.tenant]);
    const pass = async () => {
      await t.garbage.pass(listed);
      await t.work();
    };
    const meta = queueKeys(gone.tenant, 'orders').meta;
    await pass();
    expect(await redis().call('hget', meta, 'state')).toBe('open');
    const deleted = await countCommand(redis(), 'del');
    await pass();
    expect(await countCommand(redis(), 'del')).toBe(deleted);
    expect(await redis().call('hlen', integrationKeys(gone.integration).act)).toBe(0);
    expect(await redis().call('hlen', tenantKeys(gone.tenant).keys)).toBe(0);
    await pass();
    await pass();
    expect(await exists(meta, tenantKeys(gone.tenant).meta, integrationKeys(gone.integration).meta)).toEqual([
      false,
      false,
      false,
    ]);
    expect(await redis().call('sismember', CLUSTER_KEYS.tenants, gone.tenant)).toBe(0);
    expect(tenantId(gone.name)).toBe(gone.tenant);
  });

  test('a tenant whose workspace is created again while it is being closed is open after that', async () => {
    const gone = t;
    t = await createAuditedTenant(redis());
    t.fence.epoch = 2;
    const create = async () => {
      for (const kind of ['Account', 'Workspace', 'CatalogStream', 'Integration', 'Subscription'] as const) {
        const { account, workspace, stream, integration, subscription } = gone.objects;
        const of = { Account: account, Workspace: workspace, CatalogStream: stream };
        t.put(kind, { ...of, Integration: integration, Subscription: subscription }[kind]);
      }
      (t.caches.namespaces.store as unknown as Store<object>).set(gone.name, { workspace: gone.name, deleting: false });
      await t.tenants.sync(gone.name);
    };
    const { applyParts } = t.control;
    t.actual.onRelist = () => {
      // The workspace is created after the caches have been compared with the quorum.
      Object.assign(t.control, {
        applyParts: async (change: Parameters<typeof applyParts>[0]) => {
          Object.assign(t.control, { applyParts });
          await create();
          await applyParts(change);
        },
      });
    };
    for (let n = 0; n < 2; n++) {
      await t.garbage.pass(new Set([gone.tenant]));
      await t.work();
    }
    const { meta } = queueKeys(gone.tenant, 'orders');
    expect(await redis().call('hget', meta, 'state')).toBe('open');
    expect(await redis().call('hget', integrationKeys(gone.integration).sub(gone.sub), 'route')).toBe('open');
  });

  test('a deposed leader does not remove anything', async () => {
    await lose('stream');
    await t.garbage.pass(new Set([t.tenant]));
    await t.control.readTenant(t.tenant, 2);
    await expect(t.garbage.pass(new Set([t.tenant]))).rejects.toThrow(FencedError);
    expect(await exists(keys().q.meta)).toEqual([true]);
  });

  test('is removed even if the data of another tenant cannot be read', async () => {
    const damaged = tenantId('damaged');
    const { index } = tenantKeys(damaged);
    await redis().call('hset', index, 's:int_damaged:sub_damaged', 'n');
    await redis().call('set', integrationKeys('int_damaged').sub('sub_damaged'), 'x');
    await lose('stream');
    const pass = () => t.garbage.pass(new Set([damaged, t.tenant]));
    await pass();
    await expect(pass()).rejects.toThrow('WRONGTYPE');
    expect(t.swept).toEqual(['queue']);
    await redis().call('del', index);
    await redis().call('del', integrationKeys('int_damaged').sub('sub_damaged'));
  });

  test('removes an index entry without data', async () => {
    await redis().call('hset', keys().t.index, 'q:foo', 'g', 'i:int_foo', '', 's:int_foo:sub_foo', 'n');
    await sweep();
    expect(Object.keys(await redis().readHash(keys().t.index)).filter(entry => entry.includes('foo'))).toEqual([]);
  });
});
