import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { listConditions } from '../../../../test/support/controller/list-conditions.ts';
import { createTestContext, objectOf } from '../../../../test/support/controller/test-context.ts';
import { publicId } from '../../../core/ids/ids.ts';
import { createControlStore } from '../../../redis/control-store.ts';
import type { Hint } from '../../../redis/hints.ts';
import { createLedgerStore } from '../../../redis/ledger-store.ts';
import { onEachRedis } from '../../../redis/testing/each-redis.ts';
import { createRegistry } from '../../../telemetry/metrics.ts';
import type { Cached } from '../../caches/caches.ts';
import type { Context } from '../../context/context.ts';
import { finalizeAccount, reconcileAccount } from './reconcile.ts';
import { createShortages } from './shortages.ts';

const NOW_MS = 1_800_000_000_000;

onEachRedis(redis => {
  function start() {
    const name = `acct-${randomUUID()}`;
    const account = publicId('Account', '', name);
    const hints: Hint[] = [];
    const news: [string, boolean][] = [];
    const registry = createRegistry();
    const shortages = createShortages({
      registry,
      exists: () => true,
      onNews: (...told) => news.push(told),
    });
    const context = {
      control: createControlStore(redis()),
      queueHints: {
        lower: async (lowered: readonly Hint[]) => {
          hints.push(...lowered);
        },
      },
      shortages,
      fence: () => 1,
      nowMs: () => NOW_MS,
      explain: (error: unknown) => error,
    } as Pick<Context, 'control' | 'queueHints' | 'shortages' | 'fence' | 'nowMs' | 'explain'> as Context;
    const reconcile = (includedTokens: number, plan: 'Free' | 'Metered' = 'Free') =>
      reconcileAccount(context)({ metadata: { name }, spec: { owners: [], plan, includedTokens } });
    const finalize = (includedTokens: number, workspaces: readonly Cached<'Workspace'>[]) =>
      finalizeAccount({ ...context, caches: createTestContext({ Workspace: workspaces }).context.caches })({
        metadata: { name },
        spec: { owners: [], plan: 'Free', includedTokens },
      });
    const ask = (tokens: number) =>
      createLedgerStore(redis()).reserve(account, NOW_MS, {
        queue: 'ten_1:orders',
        epoch: 1,
        need: tokens,
        amount: tokens,
        integrations: [],
        closely: true,
      });
    const gauge = async () => /accounts_short (\d)/.exec(await registry.metrics())?.[1];
    return { name, reconcile, finalize, ask, hints, news, gauge };
  }

  describe('an account that is being deleted', () => {
    const workspace = (name: string, account: string, metadata: object = {}) =>
      objectOf<'Workspace'>(name, { account, owners: [], ingressKeys: [] }, { namespace: undefined, metadata });
    const leaving = { deletionTimestamp: '2026-01-01T00:00:00Z' };

    test('stays while a workspace names it, says which, and still applies its plan', async () => {
      const { name, finalize, ask } = start();
      const answer = await finalize(10, [workspace('b', name), workspace('a', name), workspace('other', 'another')]);
      if (answer === 'done') throw new Error('let go');
      expect(answer.events).toMatchObject([{ type: 'Warning', reason: 'StillInUse' }]);
      expect(listConditions(answer)).toEqual(['Ready=False/StillInUse', 'Reconciling=True/Progressing']);
      expect(answer.conditions[0]?.message).toMatch(/Delete these workspaces: a, b$/);
      expect(await ask(10)).toMatchObject({ answer: 'OK', tokens: 10 });
    });

    test('goes when its last workspace is on its way out, and asks nothing of Redis', async () => {
      const { name, finalize, ask } = start();
      expect(await finalize(10, [workspace('a', name, leaving), workspace('other', 'another')])).toBe('done');
      expect(await ask(1)).toEqual({ answer: 'CLOSED' });
    });
  });

  test('reports plan and tokens; an account that was never short is reported once', async () => {
    const { name, reconcile, ask, news, hints } = start();
    expect(await ask(1)).toEqual({ answer: 'CLOSED' });
    expect((await reconcile(10)).requeueAfterMs).toBeUndefined();
    await reconcile(10);
    expect(news).toEqual([[name, false]]);
    expect(hints.map(({ member }) => member)).toEqual(['ten_1:orders']);
    expect(await ask(10)).toMatchObject({ answer: 'OK', tokens: 10 });
  });

  describe('short', () => {
    test('is reported once, read again, and ends with a top-up that wakes what waited', async () => {
      const { name, reconcile, ask, news, hints, gauge } = start();
      await reconcile(2);
      expect(await ask(3)).toEqual({ answer: 'SHORT' });
      for (let i = 0; i < 3; i++) expect((await reconcile(2)).requeueAfterMs).toBe(30_000);
      expect(news).toEqual([
        [name, false],
        [name, true],
      ]);
      expect([await gauge(), hints]).toEqual(['1', []]);
      expect((await reconcile(3)).requeueAfterMs).toBeUndefined();
      expect(news.at(-1)).toEqual([name, true]);
      expect(hints).toEqual([{ member: 'ten_1:orders', dueMs: NOW_MS }]);
      expect(await gauge()).toBe('0');
    });

    test('a top-up that does not suffice wakes, too, and the shortage stays', async () => {
      const { reconcile, ask, news, hints } = start();
      await reconcile(0);
      await ask(5);
      await reconcile(0);
      await reconcile(4);
      expect(hints).toHaveLength(1);
      expect(news).toHaveLength(2);
    });

    test('ends with a plan that only counts', async () => {
      const { reconcile, ask, hints, gauge } = start();
      await reconcile(0);
      await ask(5);
      await reconcile(0);
      await reconcile(0, 'Metered');
      expect([await gauge(), hints.length]).toEqual(['0', 1]);
    });
  });
});
