import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { listConditions } from '../../../../test/support/controller/list-conditions.ts';
import { createTestContext, objectOf } from '../../../../test/support/controller/test-context.ts';
import { startPaidPart } from '../../../../test/support/part/paid-part.ts';
import { createTestPart, event } from '../../../../test/support/part/part.ts';
import { publicId } from '../../../core/ids/ids.ts';
import { createPartsControl } from '../../../part/control/parts-control.ts';
import { createTokens } from '../../../part/tokens/tokens.ts';
import { createControlRecord } from '../../../record/control-store.ts';
import { onEachRedis } from '../../../redis/testing/each-redis.ts';
import { createRegistry } from '../../../telemetry/metrics.ts';
import type { Cached } from '../../caches/caches.ts';
import type { Context } from '../../context/context.ts';
import type { LimitUse } from './limit-use.ts';
import { finalizeAccount, reconcileAccount } from './reconcile.ts';
import { createShortages } from './shortages.ts';

const NOW_MS = 1_800_000_000_000;
const TOKEN_BYTES = 16_384;

onEachRedis(redis => {
  function start() {
    const name = `acct-${randomUUID()}`;
    const account = publicId('Account', '', name);
    const news: [string, boolean][] = [];
    const registry = createRegistry();
    const lease = { isHeld: true };
    const shortages = createShortages({
      registry,
      exists: () => true,
      leads: () => lease.isHeld,
      onNews: (...args) => news.push(args),
    });
    const context = {
      control: createPartsControl(redis(), createControlRecord(redis()), () => NOW_MS),
      shortages,
      fence: () => 1,
      nowMs: () => NOW_MS,
      explain: (error: unknown) => error,
      limitUse: { limitsOf: () => ({ streams: 5 }), levelsOf: () => ({ reached: [], near: [] }) },
    } as unknown as Context & { limitUse: Pick<LimitUse, 'levelsOf' | 'limitsOf'> };
    const reconcile = (includedTokens: number, plan: 'Free' | 'Metered' = 'Free') =>
      reconcileAccount(context)({ metadata: { name }, spec: { owners: [], plan, includedTokens } });
    const finalize = (includedTokens: number, workspaces: readonly Cached<'Workspace'>[]) =>
      finalizeAccount({ ...context, caches: createTestContext({ Workspace: workspaces }).context.caches })({
        metadata: { name },
        spec: { owners: [], plan: 'Free', includedTokens },
      });
    /** Stores an event with this price in a separate part. Returns the token request of the part, and its result. */
    async function send(tokens: number): Promise<() => Promise<string>> {
      const t = createTestPart(redis());
      await t.setUp({ a: { send: 'held' } }, ['k']);
      await t.change({ kind: 'meta', field: 'payer', value: account }, { kind: 'meta', field: 'plan', value: 'Free' });
      await t.ingest(event('k', { body: Buffer.alloc(tokens * TOKEN_BYTES) }));
      // The client that advances the part receives the number of required tokens.
      await t.advanceAll();
      return async () => {
        const { answer } = await createTokens(t.client).settle(t.part, NOW_MS);
        await t.advanceAll();
        return (await t.counts('a'))[1] === 1 ? 'routed' : answer;
      };
    }
    const ask = async (tokens: number) => (await send(tokens))();
    const gauge = async () => /accounts_short (\d)/.exec(await registry.metrics())?.[1];
    return { name, reconcile, finalize, send, ask, news, gauge, lease };
  }

  describe('an account that is being deleted', () => {
    const workspace = (name: string, account: string, metadata: object = {}) =>
      objectOf<'Workspace'>(name, { account, owners: [], ingressKeys: [] }, { namespace: undefined, metadata });
    const leaving = { deletionTimestamp: '2026-01-01T00:00:00Z' };

    test('is kept while a workspace refers to it, lists the workspaces, and still applies its plan', async () => {
      const { name, finalize, ask } = start();
      const answer = await finalize(10, [workspace('b', name), workspace('a', name), workspace('other', 'another')]);
      if (answer === 'done') throw new Error('the finalizer was removed');
      expect(answer.events).toMatchObject([{ type: 'Warning', reason: 'StillInUse' }]);
      expect(listConditions(answer)).toEqual(['Ready=False/StillInUse', 'Reconciling=True/Progressing']);
      expect(answer.status?.limits).toEqual({ streams: 5 });
      expect(answer.conditions[0]?.message).toMatch(/Delete these workspaces: a, b$/);
      expect(await ask(10)).toBe('routed');
    });

    test('is removed with its last workspace, without a call to Redis', async () => {
      const { name, finalize, ask } = start();
      expect(await finalize(10, [workspace('a', name, leaving), workspace('other', 'another')])).toBe('done');
      expect(await ask(1)).toBe('CLOSED');
    });
  });

  test('reports plan and tokens; an account that never had a shortage is reported once', async () => {
    const { name, reconcile, ask, news } = start();
    expect(await ask(1)).toBe('CLOSED');
    expect(await reconcile(10)).toMatchObject({ status: { limits: { streams: 5 } }, requeueAfterMs: undefined });
    await reconcile(10);
    expect(news).toEqual([[name, false]]);
    expect(await ask(10)).toBe('routed');
  });

  test('a lower number of tokens also applies to streams that have received some in advance', async () => {
    const { name, reconcile } = start();
    await reconcile(1_000);
    const t = await startPaidPart(redis(), publicId('Account', '', name), NOW_MS);
    const sent = async () => {
      await t.send('k');
      for (let n = 0; n < 3; n++) {
        await createTokens(t.client).settle(t.part, NOW_MS);
        await t.advanceAll();
      }
      return (await t.counts('a'))[1];
    };
    expect([await sent(), await sent()]).toEqual([1, 2]);
    await reconcile(2);
    expect(await sent()).toBe(2);
    await reconcile(4);
    expect(await sent()).toBe(4);
    expect(await sent()).toBe(4);
  });

  describe('a shortage of tokens', () => {
    test('is reported once, read again, and ends with a top-up', async () => {
      const { name, reconcile, send, news, gauge, lease } = start();
      await reconcile(2);
      const ask = await send(3);
      expect(await ask()).toBe('SHORT');
      for (let i = 0; i < 3; i++) expect((await reconcile(2)).requeueAfterMs).toBe(30_000);
      expect(news).toEqual([
        [name, false],
        [name, true],
      ]);
      expect(await gauge()).toBe('1');
      // Only the leader reports it.
      lease.isHeld = false;
      expect(await gauge()).toBe('0');
      lease.isHeld = true;
      expect((await reconcile(3)).requeueAfterMs).toBe(3_000);
      expect(news.at(-1)).toEqual([name, true]);
      expect((await reconcile(3)).requeueAfterMs).toBeUndefined();
      expect(await gauge()).toBe('0');
      expect(await ask()).toBe('routed');
    });

    test('remains after a top-up that is not sufficient', async () => {
      const { reconcile, ask, news } = start();
      await reconcile(0);
      await ask(5);
      await reconcile(0);
      await reconcile(4);
      expect(news).toHaveLength(2);
    });

    test('is reported again soon if a top-up is only sufficient for the first event', async () => {
      const { name, reconcile, send, news } = start();
      await reconcile(0);
      const [first, second] = [await send(1), await send(2)];
      expect([await first(), await second()]).toEqual(['SHORT', 'SHORT']);
      await reconcile(0);
      expect((await reconcile(2)).requeueAfterMs).toBe(3_000);
      expect([await first(), await second()]).toEqual(['routed', 'SHORT']);
      expect((await reconcile(2)).requeueAfterMs).toBe(30_000);
      expect(news.slice(-2)).toEqual([
        [name, true],
        [name, true],
      ]);
    });

    test('ends with a plan that does not limit the tokens', async () => {
      const { reconcile, ask, gauge } = start();
      await reconcile(0);
      await ask(5);
      await reconcile(0);
      await reconcile(0, 'Metered');
      expect(await gauge()).toBe('0');
    });
  });
});
