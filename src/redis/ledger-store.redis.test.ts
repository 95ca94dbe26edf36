import { randomUUID } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { accountKeys, integrationKeys } from './keys.ts';
import { createLedgerStore, type LedgerTotal, type Reserving, readBalance } from './ledger-store.ts';
import { onEachRedis } from './testing/each-redis.ts';
import { createTenant, items, QUEUE, START_MS } from './testing/tenant.ts';

onEachRedis(redis => {
  async function start(plan: string | null = 'Free', included = 10) {
    const t = createTenant(redis());
    if (plan !== null) await t.control.setAccount(1, t.account, plan, included);
    const ledger = createLedgerStore(redis());
    const batch = (more: Partial<Reserving> = {}): Reserving => ({
      queue: 'ten_1:orders',
      epoch: 1,
      need: 1,
      amount: 1,
      integrations: ['int_1', 'int_2'],
      closely: false,
      ...more,
    });
    const reserve = (more: Partial<Reserving> = {}) => ledger.reserve(t.account, t.nowMs(), batch(more));
    const fold = (totals: Record<string, [gen: string, total: number]>, release?: { queue: string; epoch: number }) =>
      ledger.fold(
        t.account,
        new Map(Object.entries(totals).map(([int, [gen, total]]) => [int, { gen, total } satisfies LedgerTotal])),
        release,
      );
    const balance = () => readBalance(redis(), t.account);
    const held = () => redis().readHash(accountKeys(t.account).hold);
    return { t, ledger, reserve, fold, balance, held };
  }
  const orders = { queue: 'ten_1:orders', epoch: 1 };
  const OK = (tokens: number, cleared = false) => ({ answer: 'OK', tokens, cleared });

  describe('reserve', () => {
    test('grants what is left after what was used and what others hold', async () => {
      const { reserve, fold } = await start();
      expect(await reserve({ amount: 6 })).toEqual(OK(6));
      expect(await reserve({ queue: 'ten_1:refunds', amount: 6 })).toEqual(OK(4));
      await fold({ int_1: ['g', 5] }, orders);
      await fold({}, { queue: 'ten_1:refunds', epoch: 1 });
      expect(await reserve({ amount: 6 })).toEqual(OK(5));
    });

    test('asks to look closely when an earlier batch was left, or when it is not enough', async () => {
      const { reserve, held } = await start();
      await reserve({ amount: 6 });
      expect(await reserve({ amount: 6 })).toEqual({ answer: 'LOOK', charged: ['int_1', 'int_2'] });
      expect(await held()).toEqual({ 'ten_1:orders': '6' });
      // The same queue's own reservation is no obstacle to it.
      expect(await reserve({ amount: 10, closely: true })).toEqual(OK(10));
      expect(await held()).toEqual({ 'ten_1:orders': '10' });
      expect(await reserve({ queue: 'ten_1:refunds', amount: 1 })).toEqual({ answer: 'LOOK', charged: [] });
    });

    test('SHORT when the account is spent, BUSY when others only hold the rest; neither holds anything', async () => {
      const { reserve, fold, held, balance } = await start();
      await reserve({ queue: 'ten_1:refunds', amount: 8 });
      expect(await reserve({ need: 3, amount: 5, closely: true })).toEqual({ answer: 'BUSY' });
      expect((await balance())?.shortages).toEqual([]);
      await fold({ int_1: ['g', 8] }, { queue: 'ten_1:refunds', epoch: 1 });
      expect(await reserve({ need: 3, amount: 5, closely: true })).toEqual({ answer: 'SHORT' });
      expect(await held()).toEqual({});
      expect(await balance()).toEqual({
        plan: 'Free',
        includedTokens: 10,
        usedTokens: 8,
        remainingTokens: 2,
        shortages: [{ queue: 'ten_1:orders', tokens: 3, atMs: START_MS }],
      });
    });

    test('a shortage is over when the queue is granted tokens again', async () => {
      const { t, reserve, balance } = await start('Free', 0);
      await reserve({ need: 3, amount: 5, closely: true });
      expect(await t.control.setAccount(1, t.account, 'Free', 3)).toBe(true);
      expect(await reserve({ need: 3, amount: 5 })).toEqual(OK(3, true));
      expect((await balance())?.shortages).toEqual([]);
    });

    test('CLOSED for an account that Redis does not know, also when something was counted for it', async () => {
      const { reserve, fold, balance } = await start(null);
      expect(await reserve()).toEqual({ answer: 'CLOSED' });
      await fold({ int_1: ['g', 8] });
      expect(await reserve()).toEqual({ answer: 'CLOSED' });
      expect(await balance()).toBeUndefined();
    });

    test('a plan that only counts grants everything and holds nothing', async () => {
      const { reserve, held, balance } = await start('Metered', 0);
      expect(await reserve({ amount: 5_000 })).toEqual(OK(5_000));
      expect(await held()).toEqual({});
      expect(await balance()).toEqual({ plan: 'Metered', includedTokens: 0, usedTokens: 0, shortages: [] });
    });

    test('a deposed owner neither reserves nor releases', async () => {
      const { reserve, fold, held } = await start();
      await reserve({ epoch: 2, amount: 4 });
      expect(await reserve({ epoch: 1, amount: 4, closely: true })).toEqual({ answer: 'FENCED' });
      await fold({}, { queue: 'ten_1:orders', epoch: 1 });
      expect(await held()).toEqual({ 'ten_1:orders': '4' });
      await fold({}, { queue: 'ten_1:orders', epoch: 2 });
      expect(await held()).toEqual({});
    });

    test('what an earlier owner left names the integrations that it may have been charged for', async () => {
      const { reserve, held } = await start();
      await reserve({ epoch: 1, amount: 4, integrations: ['int_7', 'int_8'] });
      expect(await reserve({ epoch: 2, amount: 1 })).toEqual({ answer: 'LOOK', charged: ['int_7', 'int_8'] });
      expect(await held()).toEqual({ 'ten_1:orders': '4' });
      expect(await reserve({ epoch: 2, amount: 1, closely: true })).toEqual(OK(1));
      expect(await held()).toEqual({ 'ten_1:orders': '1' });
    });

    test('what nobody repeated for ten minutes is let go', async () => {
      const { t, reserve, held } = await start();
      await reserve({ amount: 10 });
      t.clock.ms += 600_000;
      expect(await reserve({ queue: 'ten_1:refunds', amount: 10, closely: true })).toEqual({ answer: 'BUSY' });
      t.clock.ms += 1;
      expect(await reserve({ queue: 'ten_1:refunds', amount: 10 })).toEqual(OK(10));
      expect(await held()).toEqual({ 'ten_1:refunds': '10' });
    });
  });

  describe('fold', () => {
    test('counts each token once, repeated and in any order; a lost ledger counts on', async () => {
      const { fold, balance } = await start();
      for (const total of [3, 5, 4, 5, 3]) await fold({ int_1: ['g', total], int_2: ['g', 1] });
      expect((await balance())?.usedTokens).toBe(6);
      await fold({ int_1: ['h', 2] });
      expect((await balance())?.usedTokens).toBe(8);
    });

    test('any repetition and order of any growth', async () => {
      const step = fc.tuple(fc.constantFrom('int_1', 'int_2'), fc.constantFrom('g', 'h'), fc.nat(10 ** 12));
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 12 }), async steps => {
          const { fold, balance } = await start();
          const most = new Map<string, number>();
          for (const [integration, gen, total] of steps) {
            await fold({ [integration]: [gen, total] });
            most.set(integration + gen, Math.max(most.get(integration + gen) ?? 0, total));
          }
          expect((await balance())?.usedTokens).toBe([...most.values()].reduce((a, b) => a + b, 0));
        }),
        { numRuns: 30, seed: 4 },
      );
    });

    test('many at once, and the reservation is released', async () => {
      const { reserve, fold, balance, held } = await start('Free', 2_000);
      await reserve({ amount: 1_200 });
      await fold(Object.fromEntries(Array.from({ length: 1_200 }, (_, i) => [`int_${i}`, ['g', 1]])), orders);
      expect(await held()).toEqual({});
      expect((await balance())?.usedTokens).toBe(1_200);
    });
  });

  test('a survey says what route would answer, and writes nothing', async () => {
    const { t, ledger } = await start();
    const inbox = t.inboxOf('x');
    const survey = () => ledger.survey(inbox, 'gen1', t.account);
    expect(await survey()).toEqual({ answer: 'CLOSED', ledger: undefined, last: '' });
    await t.apply(t.routes({ x: {} }));
    await t.activate('x', 'k');
    expect(await survey()).toEqual({ answer: 'OK', ledger: undefined, last: '' });
    const [item] = items([{ id: `${START_MS}-0`, groupKey: 'k' }]);
    const routed = await t.inboxes.route(inbox, START_MS, 1, 'gen1', t.account, [item as never]);
    expect(await survey()).toEqual({
      answer: 'OK',
      ledger: routed.answer === 'OK' && routed.ledger,
      last: item?.ref,
    });
    expect((await ledger.survey(inbox, 'gen2', t.account)).answer).toBe('REGEN');
    for (const [change, answer] of [
      [{ sub: { route: 'paused' } }, 'PAUSED'],
      [{ state: 'pending' }, 'PENDING'],
      [{ state: 'closed' }, 'REVOKED'],
      [{ sub: { route: 'closed' } }, 'GONE'],
    ] as const) {
      await t.apply(t.routes({ x: change }));
      expect((await survey()).answer).toBe(answer);
    }
    expect(await redis().call('exists', integrationKeys(t.nameOf('y')).ledger)).toBe(0);
  });

  test('a queue that is dropped gives its reservation and its shortage back', async () => {
    const { t, reserve, held, balance } = await start();
    await t.apply(t.routes({}));
    const queue = `${t.tenant}:${QUEUE}`;
    await reserve({ queue, amount: 4 });
    await reserve({ queue: `${queue}x`, amount: 4 });
    await t.control.dropQueue(1, t.tenant, QUEUE, 'gen1');
    expect(await held()).toEqual({ [`${queue}x`]: '4' });
    await reserve({ queue, need: 9, amount: 9, closely: true });
    await t.control.dropQueue(1, t.tenant, QUEUE, 'gen1');
    expect((await balance())?.shortages).toEqual([]);
  });

  test('the balance of an account that nobody stated is not known', async () => {
    expect(await readBalance(redis(), `acc_${randomUUID()}`)).toBeUndefined();
  });
});
