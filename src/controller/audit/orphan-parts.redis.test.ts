import { beforeEach, expect, test } from 'vitest';
import { type AuditedPart, createAuditedPart } from '../../../test/support/controller/audited-part.ts';
import { type Part, partKeys } from '../../part/keys.ts';
import { CLUSTER_KEYS, integrationKeys, queueKeys } from '../../redis/keys.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';

onEachRedis(redis => {
  let w: AuditedPart;
  beforeEach(async () => {
    w = await createAuditedPart(redis());
  });

  const sweep = async (passes = 2) => {
    for (let n = 0; n < passes; n++) {
      await w.t.garbage.pass(new Set([w.t.tenant]));
      await w.t.work();
    }
  };
  const gone = (): Part => ({ ...w.part, queue: 'gone', gen: 'g1' });
  const list = (part: Part) => redis().call('hset', CLUSTER_KEYS.parts, `${part.tenant}:${part.queue}:0`, part.gen);
  const isListed = (part: Part) => redis().call('hexists', CLUSTER_KEYS.parts, `${part.tenant}:${part.queue}:0`);

  test('removes a listed part without a stream and its old generations in the second pass', async () => {
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

  test('keeps a part with undelivered events, but does not accept new ones', async () => {
    await list(gone());
    const keys = partKeys(gone());
    await redis().call('hset', keys.meta, 'gen', 'g1', 'state', 'open', 'retentionMs', 3_600_000);
    await redis().call('xadd', keys.log, '*', 'g', 'red');
    await redis().call('zadd', keys.pending, 0, 'x');
    await sweep(3);
    expect(await isListed(gone())).toBe(1);
    expect(await redis().call('exists', keys.log)).toBe(1);
    expect((await redis().readHash(keys.meta))['state']).toBe('closing');
    // Since nothing could be removed, the third pass did not list all objects.
    expect(w.t.relisted).toEqual(['routes']);
    await redis().call('del', keys.pending);
    await sweep(1);
    expect(await isListed(gone())).toBe(0);
    expect(await redis().call('exists', keys.log)).toBe(0);
  });

  test('keeps a part if the quorum has its stream', async () => {
    await list(gone());
    w.t.actual.onRelist = () => {
      const { stream } = w.t.objects;
      w.t.put('CatalogStream', { ...stream, metadata: { ...stream.metadata, name: 'gone', uid: 'x' } });
    };
    await sweep(3);
    expect(await isListed(gone())).toBe(1);
    expect(w.t.swept).toEqual([]);
  });

  test('does not list all objects in each pass because of a stream that has undelivered events', async () => {
    expect(await w.send('red')).toBe('OK');
    await w.advanceAll();
    w.t.remove('CatalogStream', w.t.objects.stream);
    w.t.remove('Subscription', w.t.objects.subscription);
    w.t.tenants.forget([w.t.name]);
    await w.t.tenants.sync(w.t.name);
    await sweep(4);
    expect([w.t.relisted, w.t.swept]).toEqual([[], []]);
    await redis().call('del', w.k.log);
    await sweep(4);
    expect(w.t.swept).toContain('queue');
  });

  test('does not list all objects in each pass because of a tenant that has undelivered events', async () => {
    const left = w;
    expect(await left.send('red')).toBe('OK');
    await left.advanceAll();
    w = await createAuditedPart(redis());
    w.t.fence.epoch = 2;
    const pass = async (times: number) => {
      for (let n = 0; n < times; n++) await w.t.garbage.pass(new Set([left.t.tenant]));
    };
    await pass(2);
    expect((await redis().readHash(left.k.meta))['state']).toBe('closing');
    expect(w.t.relisted).toEqual(['routes']);
    await pass(3);
    expect([w.t.relisted, w.t.swept]).toEqual([['routes'], []]);
    await redis().call('del', left.k.log);
    await pass(4);
    expect(w.t.swept).toContain('queue');
  });

  test('removes a stream without a finalizer, and allows it to be created again', async () => {
    w.t.remove('CatalogStream', w.t.objects.stream);
    w.t.remove('Subscription', w.t.objects.subscription);
    w.t.tenants.forget([w.t.name]);
    await w.t.tenants.sync(w.t.name);
    await sweep(4);
    expect(await isListed(w.part)).toBe(0);
    expect(w.t.swept).toEqual(['inbox', 'queue']);
    // The record has been removed as well.
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

  test('keeps an integration without an object while there are events in one of its inboxes', async () => {
    expect(await w.send('red')).toBe('OK');
    await w.advanceAll();
    expect(await w.routed()).toBe(1);
    w.t.remove('Integration', w.t.objects.integration);
    w.t.remove('Subscription', w.t.objects.subscription);
    w.t.remove('Activation', w.t.activation('red'));
    w.t.tenants.forget([w.t.name]);
    await w.t.tenants.sync(w.t.name);
    await sweep(3);
    const { meta, sub } = integrationKeys(w.t.integration);
    expect([await redis().call('exists', meta), await redis().call('exists', sub(w.t.sub))]).toEqual([1, 1]);
    expect(w.t.swept).toEqual([]);
  });

  test('the parts of a tenant without an object are closed and removed', async () => {
    const left = w;
    w = await createAuditedPart(redis());
    w.t.fence.epoch = 2;
    for (let n = 0; n < 4; n++) await w.t.garbage.pass(new Set([left.t.tenant]));
    expect(await isListed(left.part)).toBe(0);
    expect((await redis().readHash(left.k.meta))['gen'] ?? '-').toBe('-');
    expect(await isListed(w.part)).toBe(1);
  });
});
