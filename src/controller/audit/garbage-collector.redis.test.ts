import { beforeEach, describe, expect, test } from 'vitest';
import { type AuditedTenant, createAuditedTenant, NOW_MS } from '../../../test/support/controller/audited-tenant.ts';
import { tenantId } from '../../core/ids/ids.ts';
import { FencedError } from '../../redis/control-store.ts';
import { CLUSTER_KEYS, inboxKeys, integrationKeys, queueKeys, tenantKeys } from '../../redis/keys.ts';
import { countCommand } from '../../redis/testing/count-command.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';

const HOUR_MS = 3_600_000;

onEachRedis(redis => {
  let t: AuditedTenant;
  let inc: string;
  let gen: string;

  const keys = () => ({
    t: tenantKeys(t.tenant),
    q: queueKeys(t.tenant, 'orders', gen),
    i: integrationKeys(t.integration),
    x: inboxKeys(t.integration, t.sub, inc),
  });
  const exists = async (...names: string[]) =>
    Promise.all(names.map(async name => (await redis().call('exists', name)) === 1));

  beforeEach(async () => {
    t = await createAuditedTenant(redis());
    await t.begin(['red']);
    inc = (await redis().call('hget', keys().i.sub(t.sub), 'inc')) as string;
    gen = (await redis().call('hget', queueKeys(t.tenant, 'orders').meta, 'gen')) as string;
  });

  /** Two passes: what is left over counts when it is found again. */
  async function sweep(passes = 2): Promise<void> {
    for (let n = 0; n < passes; n++) {
      await t.garbage.pass(new Set([t.tenant]));
      await t.work();
    }
  }

  /** The objects go without their finalizers, and the routes are made from what is left. */
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

  async function addEvent(ms: number): Promise<string> {
    const id = `${ms}-0`;
    await redis().call('xadd', keys().q.events, id, 'g', 'red');
    await redis().call('xadd', keys().q.bodies, id, 'g', 'red');
    return id;
  }

  test('of a tenant that never was, named by an object that is gone, nothing stays', async () => {
    const { meta } = tenantKeys(tenantId('nowhere'));
    await t.tenants.sync('nowhere');
    expect(await exists(meta)).toEqual([true]);
    await sweep(1);
    expect(await exists(meta)).toEqual([false]);
    expect(await exists(keys().t.meta)).toEqual([true]);
  });

  describe('a queue without its stream', () => {
    test('goes when everything of it was routed and delivered, and its stream can come again', async () => {
      const id = await addEvent(NOW_MS);
      await redis().call('hset', keys().q.meta, 'cur', id);
      await lose('stream');
      expect(await redis().call('hget', keys().q.meta, 'state')).toBe('closing');
      await sweep(1);
      expect(await exists(keys().q.meta)).toEqual([true]);
      await sweep(1);
      expect(await exists(keys().q.meta, keys().q.events, keys().q.bodies)).toEqual([false, false, false]);
      expect(await redis().call('hexists', keys().t.index, 'q:orders')).toBe(0);
      expect(t.swept).toEqual(['queue']);
      t.put('CatalogStream', t.objects.stream);
      await t.tenants.sync(t.name);
      expect(await redis().call('hget', keys().q.meta, 'state')).toBe('open');
      expect(await redis().call('hget', keys().q.meta, 'ready')).toBe('1');
      expect(await t.look()).toEqual([]);
    });

    test.each(['not routed', 'left behind', 'not delivered'])(
      'stays with an event that was %s, until its retention is over',
      async how => {
        const id = await addEvent(NOW_MS);
        if (how !== 'not routed') await redis().call('hset', keys().q.meta, 'cur', id);
        if (how === 'left behind') await redis().call('hset', keys().q.behind, 'int_x/sub_x.y', '0-0');
        if (how === 'not delivered') await redis().call('zadd', keys().x.pending, 0, 'red\0ref');
        await lose('stream');
        t.clock.ms = NOW_MS + HOUR_MS - 1_000;
        t.calls.length = 0;
        await sweep(3);
        expect(await exists(keys().q.meta, keys().q.events)).toEqual([true, true]);
        expect(t.calls).not.toContain('patch');
        t.clock.ms = NOW_MS + HOUR_MS + 1_000;
        await sweep();
        expect(await exists(keys().q.meta, keys().q.events)).toEqual([false, false]);
      },
    );

    test('stays when the quorum still has the stream', async () => {
      await lose('stream');
      t.actual.onRelist = () => t.put('CatalogStream', t.objects.stream);
      await sweep(3);
      expect(await exists(keys().q.meta)).toEqual([true]);
      expect(t.swept).toEqual([]);
    });

    test('stays while it takes events', async () => {
      t.remove('CatalogStream', t.objects.stream);
      await sweep(3);
      expect(await exists(keys().q.meta)).toEqual([true]);
    });
  });

  describe('an inbox without its subscription', () => {
    test('stays until the newest event in it is past its retention', async () => {
      await redis().call('xadd', keys().x.log, `${NOW_MS}-0`, 'g', 'red');
      await redis().call('zadd', keys().x.pending, 0, 'red\0ref');
      await lose('subscription');
      await sweep(3);
      expect(await exists(keys().i.sub(t.sub), keys().x.log)).toEqual([true, true]);
      t.clock.ms = NOW_MS + HOUR_MS + 1;
      await sweep();
      expect(await exists(keys().i.sub(t.sub), keys().x.log, keys().x.pending)).toEqual([false, false, false]);
      expect(t.swept).toEqual(['inbox']);
      t.put('Subscription', t.objects.subscription);
      await t.tenants.sync(t.name);
      expect(await redis().call('hget', keys().i.sub(t.sub), 'route')).toBe('open');
      expect(await t.look()).toEqual([]);
    });

    test('stays, whatever lies in it, while an object has it that is not admitted', async () => {
      t.put('Integration', { ...t.objects.integration, spec: { workspace: t.partner, revoked: true } } as never);
      await t.tenants.sync(t.name);
      expect(await redis().call('hget', keys().i.sub(t.sub), 'route')).toBe('closed');
      await sweep(3);
      expect(await exists(keys().i.sub(t.sub))).toEqual([true]);
    });
  });

  test('an integration goes after its subscriptions, and what it was routed is counted first', async () => {
    await redis().call('hset', keys().i.ledger, 'gen', 'g', t.account, 7, `${t.account}:20000`, 7);
    await lose('integration', 'subscription');
    await sweep();
    expect(await exists(keys().i.meta, keys().i.act, keys().i.ledger)).toEqual([false, false, false]);
    expect(t.swept).toEqual(['inbox', 'integration']);
    expect((await t.control.readBalance(t.account))?.usedTokens).toBe(7);
    expect(await t.look()).toEqual([]);
  });

  test('a deleted tenant leaves nothing, and nothing waits until Redis has freed its data', async () => {
    await lose('workspace', 'stream', 'integration', 'subscription');
    const deleted = await countCommand(redis(), 'del');
    await sweep(3);
    expect(await countCommand(redis(), 'del')).toBe(deleted);
    const { meta, keys: ingress, index, gates } = keys().t;
    expect(await exists(meta, ingress, index, gates, keys().q.meta, keys().i.meta)).toEqual(Array(6).fill(false));
    expect(await redis().call('sismember', CLUSTER_KEYS.tenants, t.tenant)).toBe(0);
    await sweep(1);
    expect(t.tenants.names()).toEqual([]);
  });

  test('a tenant without an object is closed, and removed when it is drained', async () => {
    const gone = t;
    await addEvent(NOW_MS);
    // Another leader, which never saw an object of it.
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
    expect(await redis().call('hget', meta, 'state')).toBe('closing');
    expect(await redis().call('hlen', integrationKeys(gone.integration).act)).toBe(0);
    expect(await redis().call('hlen', tenantKeys(gone.tenant).keys)).toBe(0);
    t.calls.length = 0;
    await pass();
    expect(t.calls).not.toContain('patch');
    t.clock.ms = NOW_MS + HOUR_MS + 1;
    await pass();
    expect(await exists(meta, tenantKeys(gone.tenant).meta, integrationKeys(gone.integration).meta)).toEqual([
      false,
      false,
      false,
    ]);
    expect(await redis().call('sismember', CLUSTER_KEYS.tenants, gone.tenant)).toBe(0);
    expect(tenantId(gone.name)).toBe(gone.tenant);
  });

  test('a deposed leader sweeps nothing', async () => {
    await lose('stream');
    await t.garbage.pass(new Set([t.tenant]));
    await t.control.readTenant(t.tenant, 2);
    await expect(t.garbage.pass(new Set([t.tenant]))).rejects.toThrow(FencedError);
    expect(await exists(keys().q.meta)).toEqual([true]);
  });

  test('an entry of the index behind which nothing is goes, too', async () => {
    await redis().call('hset', keys().t.index, 'q:foo', 'g', 'i:int_foo', '', 's:int_foo:sub_foo', 'n');
    await sweep();
    expect(Object.keys(await redis().readHash(keys().t.index)).filter(entry => entry.includes('foo'))).toEqual([]);
  });
});
