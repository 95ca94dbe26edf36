import { describe, expect, test } from 'vitest';
import { createAuditedTenant, NOW_MS } from '../../../../test/support/controller/audited-tenant.ts';
import { inboxKeys, integrationKeys, queueKeys } from '../../../redis/keys.ts';
import { createQueueStore } from '../../../redis/queue-store.ts';
import { onEachRedis } from '../../../redis/testing/each-redis.ts';
import type { Cached } from '../../caches/caches.ts';
import type { Context } from '../../context/context.ts';
import { finalizeStream } from './reconcile.ts';

onEachRedis(redis => {
  async function start() {
    const t = await createAuditedTenant(redis());
    await t.begin(['red']);
    const { stream } = t.objects;
    const deleting = {
      ...stream,
      metadata: { ...stream.metadata, deletionTimestamp: new Date(NOW_MS).toISOString() },
    } as Cached<'CatalogStream'>;
    t.put('CatalogStream', deleting);
    const { meta } = queueKeys(t.tenant, 'orders');
    const [gen, inc] = (await Promise.all([
      redis().call('hget', meta, 'gen'),
      redis().call('hget', integrationKeys(t.integration).sub(t.sub), 'inc'),
    ])) as [string, string];
    const context = {
      caches: t.caches,
      tenants: t.tenants,
      control: t.control,
      // A draining stream must not call the API server at every look.
      client: { get: () => Promise.reject(new Error('the namespace is cached')) },
      deletingForMs: () => 0,
      explain: (error: unknown) => error,
      recordForcedRemoval: () => {},
    } as unknown as Context;
    /** `gone`, or what is said while it waits. */
    async function finalize(): Promise<string> {
      const outcome = await finalizeStream(context)(deleting);
      const gone = (await redis().call('exists', meta)) === 0;
      expect(gone).toBe(outcome === 'done');
      return outcome === 'done' ? 'gone' : (outcome.conditions?.[0]?.message ?? '').replace(/\. .*/, '');
    }
    return { t, finalize, q: queueKeys(t.tenant, 'orders', gen), x: inboxKeys(t.integration, t.sub, inc), inc };
  }

  describe('a stream with deletionPolicy Retain whose subscription is suspended', () => {
    test('goes when retention removed what that one never got', async () => {
      const { t, finalize, q, inc } = await start();
      const member = `${t.integration}/${t.sub}.${inc}`;
      await redis().call('xadd', q.events, `${NOW_MS}-0`, 'g', 'red', 's', 4);
      await redis().call('xadd', q.bodies, `${NOW_MS}-0`, 'g', 'red');
      await redis().call('hset', q.meta, 'cur', `${NOW_MS}-0`);
      await redis().call('hset', q.behind, member, '0-0');
      expect(await finalize()).toBe(
        'the stream does not accept new events and is delivering the remaining events: 0 in inboxes and 1+ to route',
      );
      const queues = createQueueStore(redis());
      const ref = { tenant: t.tenant, queue: 'orders' };
      const owned = await queues.own(ref, NOW_MS, 'A');
      if (owned.answer !== 'OK') throw new Error(`own answered ${owned.answer}`);
      await queues.trim({ ...ref, ...owned }, NOW_MS, `${NOW_MS + 1}-0`, [member]);
      expect(await finalize()).toBe('gone');
    });

    test('goes without an event, whatever test event of that one is open', async () => {
      const { finalize, x } = await start();
      await redis().call('zadd', x.pending, 0, '\0ref');
      expect(await finalize()).toBe('gone');
    });

    test('stays with an event that it was routed', async () => {
      const { finalize, q, x } = await start();
      await redis().call('xadd', q.events, `${NOW_MS}-0`, 'g', 'red', 's', 4);
      await redis().call('hset', q.meta, 'cur', `${NOW_MS}-0`);
      await redis().call('zadd', x.pending, 0, 'red\0ref');
      expect(await finalize()).toBe(
        'the stream does not accept new events and is delivering the remaining events: 1+ in inboxes and 0 to route',
      );
    });
  });
});
