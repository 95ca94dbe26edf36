import { describe, expect, test } from 'vitest';
import { createAuditedPart } from '../../../../test/support/controller/audited-part.ts';
import { withClock } from '../../../../test/support/part/clock.ts';
import { generationOf } from '../../../core/ids/ids.ts';
import type { AnyObject } from '../../../kube/object.ts';
import { createFindSlot } from '../../../part/inbox/find-part.ts';
import { createPartInboxRecovery } from '../../../part/owner/recovery.ts';
import { createSweep } from '../../../part/sweep/sweep.ts';
import { queueKeys } from '../../../redis/keys.ts';
import { onEachRedis } from '../../../redis/testing/each-redis.ts';
import type { Cached } from '../../caches/caches.ts';
import type { Context } from '../../context/context.ts';
import { finalizeStream } from './reconcile.ts';

const HOUR_MS = 3_600_000;

onEachRedis(redis => {
  async function start() {
    const world = await createAuditedPart(redis());
    const { t, part, k } = world;
    const { stream } = t.objects;
    const subscription = t.objects.subscription as Cached<'Subscription'>;
    const deleting = {
      ...stream,
      metadata: { ...stream.metadata, deletionTimestamp: new Date(t.clock.ms).toISOString() },
    } as Cached<'CatalogStream'>;
    const { meta } = queueKeys(t.tenant, 'orders');
    const context = {
      caches: t.caches,
      tenants: t.tenants,
      control: t.control,
      // A draining stream must not send a request to the API server for each check.
      client: { get: () => Promise.reject(new Error('the namespace is cached')) },
      deletingForMs: () => 0,
      stuckForMs: () => 0,
      explain: (error: unknown) => error,
      recordForcedRemoval: () => {},
    } as unknown as Context;
    async function sendTest() {
      const { spec, metadata } = subscription;
      const inbox = { integration: t.integration, sub: t.sub, inc: generationOf(metadata.uid) };
      const findSlot = createFindSlot(redis(), () => ({ tenant: t.tenant, queue: spec.stream }));
      return createPartInboxRecovery(redis(), findSlot).sendTest(inbox);
    }
    return {
      k,
      send: (...groupKeys: string[]) => world.send(...groupKeys),
      advanceAll: () => world.advanceAll(),
      routed: () => world.routed(),
      sendTest,
      suspend: async () => {
        t.put('Subscription', { ...subscription, spec: { ...subscription.spec, suspended: true } } as AnyObject);
        await t.tenants.sync(t.name);
      },
      /** Removes all data older than the retention, which is one hour. */
      expireAll: async () => {
        const sweep = createSweep(withClock(redis(), () => Date.now() + 2 * HOUR_MS));
        for (const state = {}; ; ) {
          const answer = await sweep(part, state);
          if (answer.answer !== 'OK' || !answer.more) return;
        }
      },
      /** Returns `gone`, or the message while waiting. */
      finalize: async (): Promise<string> => {
        t.put('CatalogStream', deleting);
        const outcome = await finalizeStream(context)(deleting);
        const gone = (await redis().call('exists', meta)) === 0;
        expect(gone).toBe(outcome === 'done');
        if (gone) expect(await redis().readHash(k.meta)).toEqual({ gen: '-', fence: '1' });
        return outcome === 'done' ? 'gone' : (outcome.conditions?.[0]?.message ?? '').replace(/\. .*/, '');
      },
    };
  }

  const left = (inInboxes: string, toRoute: string) =>
    `the stream does not accept new events and is still delivering the remaining events: ${inInboxes} in inboxes and ${toRoute} to route`;

  describe('a stream with deletionPolicy Retain whose subscription is suspended', () => {
    test('is removed after its last events have expired', async () => {
      const { finalize, suspend, send, expireAll } = await start();
      await suspend();
      expect(await send('red')).toBe('OK');
      expect(await finalize()).toBe(left('0', '1+'));
      await expireAll();
      expect(await finalize()).toBe('gone');
    });

    test('is removed if there are no events, even with an open test event', async () => {
      const { finalize, sendTest, suspend, k } = await start();
      expect(await sendTest()).toMatchObject({ answer: 'OK' });
      await suspend();
      expect(await redis().call('zcard', k.pending)).toBe(1);
      expect(await finalize()).toBe('gone');
    });

    test('is kept with a routed event until the event is delivered or expired', async () => {
      const { finalize, suspend, send, advanceAll, routed, expireAll } = await start();
      await send('red');
      await advanceAll();
      expect(await routed()).toBe(1);
      await suspend();
      expect(await finalize()).toBe(left('1+', '0'));
      await expireAll();
      expect(await finalize()).toBe('gone');
    });
  });

  test('a stream that is being deleted does not accept events', async () => {
    const { finalize, send } = await start();
    await send('red');
    expect(await finalize()).not.toBe('gone');
    expect(await send('red')).toBe('CLOSED');
  });
});
