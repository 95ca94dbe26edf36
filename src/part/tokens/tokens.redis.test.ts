import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { createTestPart, event, START_MS, type TestPart } from '../../../test/support/part/part.ts';
import { readBalance } from '../../accounts/balance.ts';
import { accountKeys } from '../../redis/keys.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import type { ScriptClient } from '../call.ts';
import { createLedgerCalls, type Report } from './ledger-calls.ts';
import { createTokens } from './tokens.ts';

onEachRedis(redis => {
  const newAccount = () => `acc_${randomBytes(8).toString('hex')}`;
  async function setPlan(account: string, plan: string, included: number) {
    await redis().call('hset', accountKeys(account).meta, 'plan', plan, 'included', included);
  }
  /** A part with one subscription for the active group key k. The given account pays for it. */
  async function startPaid(account: string, plan = 'Free'): Promise<TestPart> {
    const t = createTestPart(redis());
    await t.setUp({ a: { send: 'held' } }, ['k']);
    await t.change({ kind: 'meta', field: 'payer', value: account }, { kind: 'meta', field: 'plan', value: plan });
    return t;
  }
  async function startAccount(included: number, plan = 'Free') {
    const account = newAccount();
    await setPlan(account, plan, included);
    return account;
  }
  const tokensOf = (client: ScriptClient) => createTokens(client);
  const settle = async (t: TestPart) => tokensOf(t.client).settle(t.part, START_MS);
  const used = async (account: string) => (await readBalance(redis(), account))?.usedTokens;
  const held = async (account: string) => Object.values(await redis().readHash(accountKeys(account).hold)).map(Number);
  const routed = async (t: TestPart) => (await t.counts('a'))[1];
  /** Settles and routes until nothing changes. Returns the last response. */
  async function run(t: TestPart) {
    for (let idle = 0; ; idle++) {
      const before = await routed(t);
      const answer = await settle(t);
      await t.advanceAll();
      if ((await routed(t)) !== before) idle = 0;
      // The first check of a held part determines how many tokens it requires.
      else if (idle === 2) return answer;
    }
  }

  test('a late report does not revert anything', async () => {
    const account = await startAccount(10, 'Metered');
    const t = await startPaid(account, 'Metered');
    const { report, reportToAccount } = createLedgerCalls(t.client);
    await t.send('k');
    const early = (await report(t.part)) as Report;
    await t.send('k');
    await settle(t);
    await reportToAccount(account, t.part, START_MS, { ...early, need: 0 });
    expect(await used(account)).toBe(2);
  });

  describe('a Free account', () => {
    test('does not route before a grant, or beyond the included tokens', async () => {
      const account = await startAccount(10);
      const t = await startPaid(account);
      await t.ingest(...Array.from({ length: 13 }, () => event('k')));
      expect(await routed(t)).toBe(0);
      expect(await run(t)).toMatchObject({ answer: 'SHORT', payer: account });
      expect(await routed(t)).toBe(10);
      await settle(t);
      expect(await used(account)).toBe(10);
      const balance = await readBalance(redis(), account);
      expect(balance?.shortages).toEqual([{ queue: `${t.part.tenant}:orders`, tokens: 1, atMs: START_MS }]);
    });

    test('that was deleted does not pay, until it is created again', async () => {
      const account = await startAccount(10);
      const t = await startPaid(account);
      await t.send('k');
      await run(t);
      // The balance stays in Redis.
      await t.change({ kind: 'meta', field: 'plan', value: '' });
      await t.send('k');
      expect(await run(t)).toMatchObject({ answer: 'CLOSED', payer: account });
      await tokensOf(t.client).recall(t.part, START_MS);
      await t.advanceAll();
      expect([await routed(t), await used(account)]).toEqual([1, 1]);
      await t.change({ kind: 'meta', field: 'plan', value: 'Free' });
      await run(t);
      expect([await routed(t), await used(account)]).toEqual([2, 2]);
    });

    test('does not grant tokens to a part whose payer has changed meanwhile', async () => {
      const t = await startPaid(await startAccount(10));
      const { report, apply } = createLedgerCalls(t.client);
      const { ledger } = (await report(t.part)) as Report;
      await t.change({ kind: 'meta', field: 'payer', value: newAccount() });
      await apply(t.part, ledger, '10');
      expect((await report(t.part))?.left).toBe('0');
      await apply(t.part, ((await report(t.part)) as Report).ledger, '10');
      expect((await report(t.part))?.left).toBe('10');
    });

    test('continues after a top-up', async () => {
      const account = await startAccount(2);
      const t = await startPaid(account);
      const refs = await t.send('k', 'k', 'k');
      await run(t);
      await setPlan(account, 'Free', 3);
      expect(await settle(t)).toMatchObject({ answer: 'OK', payer: account, cleared: true, waited: true });
      await t.advanceAll();
      expect((await t.hash('meta')).hold).toBeUndefined();
      expect((await t.members('pending')).map(entry => entry.slice(-15))).toEqual(refs);
      expect((await readBalance(redis(), account))?.shortages).toEqual([]);
    });

    test('a wide event waits until it can be paid for completely', async () => {
      const account = await startAccount(2);
      const t = await startPaid(account);
      await t.ingest(event('k', { body: Buffer.alloc(3 * 16_384) }));
      expect(await run(t)).toMatchObject({ answer: 'SHORT' });
      expect(await routed(t)).toBe(0);
      await setPlan(account, 'Free', 3);
      expect(await run(t)).toMatchObject({ answer: 'OK' });
      expect(await routed(t)).toBe(1);
    });

    test('grants at most half of the remaining tokens, shared by its parts', async () => {
      const account = await startAccount(1_000);
      const [one, two] = [await startPaid(account), await startPaid(account)];
      await one.send('k');
      await run(one);
      expect(await held(account)).toEqual([499]);
      await two.send('k');
      await run(two);
      expect(await routed(two)).toBe(1);
      expect((await held(account)).reduce((a, b) => a + b, 0)).toBeLessThan(1_000 - 2);
    });

    test('reclaims tokens of idle parts before there is a shortage', async () => {
      const account = await startAccount(20);
      const [idle, busy] = [await startPaid(account), await startPaid(account)];
      await idle.send('k');
      await run(idle);
      for (let i = 0; i < 20; i++) await busy.send('k');
      expect(await run(busy)).toMatchObject({ answer: 'SHORT' });
      expect((await routed(idle)) ?? 0).toBe(1);
      expect(await routed(busy)).toBe(19);
      expect(await used(account)).toBe(20);
      expect(await held(account)).toEqual([]);
      // Nothing may be routed there either.
      await idle.send('k');
      expect(await routed(idle)).toBe(1);
    });

    test('a deleted part does not hold any tokens', async () => {
      const account = await startAccount(10);
      const [gone, busy] = [await startPaid(account), await startPaid(account)];
      await gone.send('k');
      await run(gone);
      await redis().call('unlink', gone.keys.meta);
      for (let i = 0; i < 10; i++) await busy.send('k');
      await run(busy);
      expect(await routed(busy)).toBe(9);
    });

    test('an unknown account does not pay', async () => {
      const account = newAccount();
      const t = await startPaid(account);
      await t.send('k');
      expect(await settle(t)).toMatchObject({ answer: 'CLOSED', payer: account });
      expect(await routed(t)).toBe(0);
      await setPlan(account, 'Metered', 0);
      const { shortages } = (await readBalance(redis(), account)) ?? {};
      expect(shortages).toEqual([{ queue: `${t.part.tenant}:orders`, tokens: 0, atMs: START_MS }]);
      await t.change({ kind: 'meta', field: 'plan', value: 'Metered' });
      await t.advanceAll();
      expect(await routed(t)).toBe(1);
    });
  });

  describe('a Metered account', () => {
    test('has no limit, and is charged once even if reports are repeated', async () => {
      const account = await startAccount(0, 'Metered');
      const t = await startPaid(account, 'Metered');
      await t.ingest(event('k', { body: Buffer.alloc(20_000) }), event('k'));
      await settle(t);
      await settle(t);
      expect(await used(account)).toBe(3);
      await t.send('k');
      await settle(t);
      expect(await used(account)).toBe(4);
      expect(await held(account)).toEqual([]);
    });

    test('that becomes Free stops immediately, and vice versa', async () => {
      const account = await startAccount(3, 'Metered');
      const t = await startPaid(account, 'Metered');
      await t.send('k', 'k');
      await setPlan(account, 'Free', 3);
      await t.change({ kind: 'meta', field: 'plan', value: 'Free' });
      await t.send('k', 'k');
      expect(await routed(t)).toBe(2);
      await run(t);
      expect(await routed(t)).toBe(3);
      await setPlan(account, 'Free', 2);
      expect(await readBalance(redis(), account)).toMatchObject({ usedTokens: 3, remainingTokens: 0 });
      await setPlan(account, 'Metered', 3);
      await t.change({ kind: 'meta', field: 'plan', value: 'Metered' });
      await t.advanceAll();
      expect(await routed(t)).toBe(4);
      await settle(t);
      expect(await used(account)).toBe(4);
    });
  });

  describe('another payer', () => {
    test('each account pays for its own time', async () => {
      const [first, second] = [await startAccount(100), await startAccount(100)];
      const t = await startPaid(first);
      await t.send('k', 'k');
      await run(t);
      await t.change({ kind: 'meta', field: 'payer', value: second });
      await t.send('k');
      expect(await routed(t)).toBe(2);
      await run(t);
      await settle(t);
      expect(await routed(t)).toBe(3);
      expect([await used(first), await used(second)]).toEqual([2, 1]);
      expect(await held(first)).toEqual([]);
    });

    test('a recreated stream still owes the tokens of the previous one', async () => {
      const account = await startAccount(100);
      const t = await startPaid(account);
      await t.send('k', 'k');
      await run(t);
      const next = { ...t.part, gen: 'gen2' };
      await t.gate(next, 1, [{ kind: 'begin' }]);
      await tokensOf(t.client).settle(next, START_MS);
      await tokensOf(t.client).settle(next, START_MS);
      expect(await used(account)).toBe(2);
      expect((await t.hash('meta')).owed).toBeUndefined();
    });
  });

  /** Fails before or after the n-th call, like a process that crashes at this point. */
  function dying(client: ScriptClient, n: number, isDone: boolean) {
    let calls = 0;
    const mortal: ScriptClient = {
      ...client,
      async runNamed(script, call) {
        calls++;
        if (calls > n || (calls === n && !isDone)) throw new Error('died');
        const answer = await client.runNamed(script, call);
        if (calls === n) throw new Error('died');
        return answer;
      },
    };
    return { client: mortal, calls: () => calls };
  }

  test.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])(
    'does not charge twice if a process crashes at step %i',
    async n => {
      for (const isDone of [false, true]) {
        const account = await startAccount(15);
        const [one, two] = [await startPaid(account), await startPaid(account)];
        await one.send('k', 'k');
        await run(one);
        for (let i = 0; i < 15; i++) await two.send('k');
        for (const t of [two, one]) {
          const { client, calls } = dying(t.client, n, isDone);
          const settled = tokensOf(client).settle(t.part, START_MS);
          const death = await settled.then(
            () => undefined,
            (error: Error) => error.message,
          );
          expect([n, death]).toEqual([n, calls() < n ? undefined : 'died']);
          await t.advanceAll();
        }
        for (let i = 0; i < 3; i++) for (const t of [one, two]) await run(t);
        const all = ((await routed(one)) as number) + ((await routed(two)) as number);
        expect([all, await used(account), await held(account)]).toEqual([15, 15, []]);
      }
    },
  );

  test('parts that settle concurrently never receive more than is available', async () => {
    const account = await startAccount(60);
    const parts = await Promise.all(Array.from({ length: 4 }, () => startPaid(account)));
    for (const t of parts) await t.ingest(...Array.from({ length: 30 }, () => event('k')));
    for (let round = 0; round < 12; round++) {
      await Promise.all(parts.flatMap(t => [run(t), run(t)]));
      const counts = (await Promise.all(parts.map(routed))) as number[];
      expect(counts.reduce((a, b) => a + b, 0)).toBeLessThanOrEqual(60);
    }
    for (const t of parts) await settle(t);
    const counts = (await Promise.all(parts.map(routed))) as number[];
    expect([counts.reduce((a, b) => a + b, 0), await used(account)]).toEqual([60, 60]);
  });

  test('a late report is ignored', async () => {
    const account = await startAccount(50);
    const t = await startPaid(account);
    await t.send('k');
    const late: (() => Promise<unknown>)[] = [];
    const slow: ScriptClient = {
      ...t.client,
      runNamed: async (script, call) => {
        if (script.name === 'account-grant') late.push(() => t.client.runNamed(script, call));
        return t.client.runNamed(script, call);
      },
    };
    for (let i = 0; i < 20; i++) {
      await tokensOf(slow).settle(t.part, START_MS);
      await t.advanceAll();
      await t.send('k');
    }
    for (const call of late) await call();
    await run(t);
    const other = await startPaid(account);
    for (let i = 0; i < 50; i++) await other.send('k');
    await run(other);
    const all = ((await routed(t)) as number) + ((await routed(other)) as number);
    expect([all, await used(account)]).toEqual([50, 50]);
  });
});
