import { describe, expect, test } from 'vitest';
import { pay, startFreeAccount, startPaidPart } from '../../../../test/support/part/paid-part.ts';
import { START_MS, type TestPart } from '../../../../test/support/part/part.ts';
import { readBalance } from '../../../accounts/balance.ts';
import { accountKeys } from '../../../redis/keys.ts';
import { onEachRedis } from '../../../redis/testing/each-redis.ts';
import type { ScriptClient } from '../../call.ts';
import { createPartRemoval } from '../../state/part-removal.ts';
import { createLedgerCalls, type Report } from '../ledger-calls.ts';
import { createTokens } from '../tokens.ts';

/** The time after which ended ledgers have been removed. */
const LATER_MS = 2 * 86_400_000;

onEachRedis(redis => {
  const startPaid = (account: string, ms = START_MS) => startPaidPart(redis(), account, ms);
  const settle = (t: TestPart, client: ScriptClient = t.client) => createTokens(client).settle(t.part, START_MS);
  async function route(t: TestPart, ...groupKeys: string[]) {
    await t.send(...groupKeys);
    for (let i = 0; i < 3; i++) {
      await settle(t);
      await t.advanceAll();
    }
  }
  async function remove(t: TestPart, client: ScriptClient = t.client) {
    const removal = createPartRemoval({ ...redis(), ...client });
    await removal.settle(t.part, START_MS);
    await removal.remove(t.part, 1, START_MS);
  }
  const used = async (account: string) => (await readBalance(redis(), account))?.usedTokens;
  const ended = async (account: string) =>
    (await redis().call('zrange', accountKeys(account).ended, 0, -1)) as string[];
  /** Returns the ledgers that have not ended, according to an account. */
  async function ledgers(account: string) {
    const of = new Set([...(await ended(account)), 'term', 'forgotten']);
    return Object.keys(await redis().readHash(accountKeys(account).seen)).filter(field => !of.has(field));
  }
  /** Returns all data of an account about parts whose ledgers have not ended. */
  async function known(account: string) {
    const { grants, hold, space } = accountKeys(account);
    const all = await Promise.all([grants, hold, space].map(key => redis().readHash(key)));
    return [...(await ledgers(account)), ...all.flatMap(hash => Object.keys(hash))];
  }
  /** Calls `first` before the first report is passed to an account. */
  function late(client: ScriptClient, first: () => Promise<unknown>): ScriptClient {
    let isFirst = true;
    return {
      ...client,
      async runNamed(script, call) {
        if (script.name === 'account-grant' && isFirst) {
          isFirst = false;
          await first();
        }
        return client.runNamed(script, call);
      },
    };
  }

  describe('an account', () => {
    test('does not grow with the number of removed parts', async () => {
      const account = await startFreeAccount(redis());
      const sizes: unknown[] = [];
      for (let n = 0; n < 3; n++) {
        const t = await startPaid(account, START_MS + n * LATER_MS);
        await route(t, 'k', 'k');
        expect(await known(account)).not.toEqual([]);
        await remove(t);
        if (n > 0) sizes.push(await redis().call('hlen', accountKeys(account).seen));
        expect([await known(account), (await ended(account)).length]).toEqual([[], 1]);
        expect(await redis().call('pttl', t.keys.meta)).toBeGreaterThan(0);
      }
      expect(new Set(sizes).size).toBe(1);
      expect(await used(account)).toBe(6);
    });

    test('does not grow with the number of payers or generations of a part', async () => {
      const [one, two] = [await startFreeAccount(redis()), await startFreeAccount(redis())];
      const t = await startPaid(one);
      await route(t, 'k');
      for (const account of [two, one, two, one]) {
        await pay(t, account);
        await settle(t);
        await route(t, 'k');
      }
      expect([await used(one), await used(two)]).toEqual([3, 2]);
      expect(await known(two)).toEqual([]);
      expect(await ledgers(one)).toHaveLength(1);
      const next = { ...t.part, gen: 'gen2' };
      await t.gate(next, 1, [{ kind: 'begin' }]);
      await createTokens(t.client).settle(next, START_MS);
      expect(await ledgers(one)).toHaveLength(1);
      expect([await used(one), await used(two)]).toEqual([3, 2]);
      t.clock.ms += LATER_MS;
      for (let i = 0; i < 2; i++) await createTokens(t.client).settle(next, START_MS);
      expect(await ended(one)).toEqual([]);
      expect([await used(one), await used(two)]).toEqual([3, 2]);
    });

    test('removes a payer for whom nothing was routed', async () => {
      const [one, two] = [await startFreeAccount(redis()), await startFreeAccount(redis())];
      const t = await startPaid(one);
      await redis().call('hset', t.keys.meta, 'hold', 'tokens', 'need', '1');
      await settle(t);
      expect(await known(one)).toHaveLength(3);
      await pay(t, two);
      await settle(t);
      expect(await known(one)).toEqual([]);
    });

    test('counts events that were routed before a removal that was not settled', async () => {
      const account = await startFreeAccount(redis());
      const t = await startPaid(account);
      await route(t, 'k');
      await t.send('k');
      await createPartRemoval({ ...redis(), ...t.client }).remove(t.part, 1, START_MS);
      expect(await used(account)).toBe(2);
      expect(await known(account)).toEqual([]);
    });
  });

  describe('a late report', () => {
    test('of a removed part is not counted again, and nothing is granted', async () => {
      const account = await startFreeAccount(redis());
      const t = await startPaid(account);
      await route(t, 'k', 'k');
      await t.send('k');
      expect(
        await settle(
          t,
          late(t.client, () => remove(t)),
        ),
      ).toEqual({ answer: 'GONE' });
      expect(await used(account)).toBe(3);
      expect(await known(account)).toEqual([]);
    });

    test('of a part that was unknown to its account is not counted again either', async () => {
      const account = await startFreeAccount(redis());
      const t = await startPaid(account);
      await t.change({ kind: 'meta', field: 'granted', value: '5' });
      await t.send('k', 'k');
      expect(
        await settle(
          t,
          late(t.client, () => remove(t)),
        ),
      ).toEqual({ answer: 'GONE' });
      expect(await used(account)).toBe(2);
      expect(await known(account)).toEqual([]);
    });

    test('of a part that has not routed anything does not leave any data', async () => {
      const account = await startFreeAccount(redis());
      const t = await startPaid(account);
      await redis().call('hset', t.keys.meta, 'hold', 'tokens', 'need', '1');
      let calls = 0;
      const slow: ScriptClient = {
        ...t.client,
        async runNamed(script, call) {
          if (script.name === 'account-grant' && ++calls === 2) await remove(t);
          return t.client.runNamed(script, call);
        },
      };
      expect(await settle(t, slow)).toEqual({ answer: 'GONE' });
      expect(await known(account)).toEqual([]);
    });

    test('of an earlier payer is not counted again', async () => {
      const [one, two] = [await startFreeAccount(redis()), await startFreeAccount(redis())];
      const t = await startPaid(one);
      await route(t, 'k', 'k');
      const { report, reportToAccount } = createLedgerCalls(t.client);
      const early = (await report(t.part)) as Report;
      await pay(t, two);
      await settle(t);
      const terms = new Map<string, string>();
      const tell = () => reportToAccount(one, t.part, START_MS, { ...early, need: 0 }, terms);
      expect(await tell()).toEqual(['NEW', `ended ${t.clock.ms}`]);
      expect([await used(one), await known(one)]).toEqual([2, []]);
      t.clock.ms += LATER_MS;
      await pay(t, one);
      for (let i = 0; i < 2; i++) await settle(t);
      terms.clear();
      expect(await tell()).toEqual(['NEW', '1']);
      expect([await used(one), (await ledgers(one)).length]).toEqual([2, 1]);
    });

    test('is counted if only another ledger was removed in the meantime', async () => {
      const account = await startFreeAccount(redis());
      const [t, other, third] = [await startPaid(account), await startPaid(account), await startPaid(account)];
      await route(other, 'k');
      await settle(third);
      await remove(other);
      third.clock.ms += LATER_MS;
      await t.change({ kind: 'meta', field: 'granted', value: '5' });
      await t.send('k', 'k');
      let calls = 0;
      const slow: ScriptClient = {
        ...t.client,
        async runNamed(script, call) {
          if (script.name === 'account-grant' && ++calls === 2) await settle(third);
          return t.client.runNamed(script, call);
        },
      };
      expect(await settle(t, slow)).toMatchObject({ answer: 'OK' });
      expect(calls).toBe(3);
      expect(await used(account)).toBe(3);
    });

    test('of an earlier ledger that started at the same time has another id', async () => {
      const [one, two] = [await startFreeAccount(redis()), await startFreeAccount(redis())];
      const t = await startPaid(one);
      await settle(t);
      const before = (await t.hash('meta')).ledger;
      await pay(t, two);
      await pay(t, one);
      expect((await t.hash('meta')).ledger).not.toBe(before);
      await route(t, 'k');
      expect([await used(one), await used(two)]).toEqual([1, 0]);
      expect(await ledgers(one)).toHaveLength(1);
    });
  });

  test('a ledger whose end is lost in a failover of its part is not charged again, and continues', async () => {
    const account = await startFreeAccount(redis());
    const t = await startPaid(account);
    await route(t, 'k', 'k');
    const before = Object.entries(await t.hash('meta')).flat() as string[];
    await remove(t);
    expect(await ledgers(account)).toEqual([]);
    await redis().call('unlink', t.keys.meta);
    await redis().call('hset', t.keys.meta, ...before);
    await settle(t);
    expect([await used(account), (await ledgers(account)).length, await ended(account)]).toEqual([2, 1, []]);
    await redis().call('hincrby', t.keys.meta, 'used', 1);
    await settle(t);
    expect(await used(account)).toBe(3);
  });

  test.each(Array.from({ length: 24 }, (_, n) => n + 1))('a removal that crashes at step %i is completed', async n => {
    for (const isDone of [false, true]) {
      const account = await startFreeAccount(redis());
      const t = await startPaid(account);
      await route(t, 'k', 'k');
      let calls = 0;
      const mortal: ScriptClient = {
        ...t.client,
        async runNamed(script, call) {
          calls++;
          if (calls > n || (calls === n && !isDone)) throw new Error('died');
          const answer = await t.client.runNamed(script, call);
          if (calls === n) throw new Error('died');
          return answer;
        },
      };
      await remove(t, mortal).catch(() => undefined);
      await remove(t);
      expect([await used(account), await known(account)]).toEqual([2, []]);
      expect(await redis().call('pttl', t.keys.meta)).toBeGreaterThan(0);
    }
  });
});
