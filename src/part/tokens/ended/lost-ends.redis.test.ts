import { describe, expect, test } from 'vitest';
import { pay, startFreeAccount, startPaidPart } from '../../../../test/support/part/paid-part.ts';
import { START_MS, type TestPart } from '../../../../test/support/part/part.ts';
import { SILENCES, silentClient } from '../../../../test/support/part/silent-client.ts';
import { readBalance } from '../../../accounts/balance.ts';
import { accountKeys } from '../../../redis/keys.ts';
import { onEachRedis } from '../../../redis/testing/each-redis.ts';
import type { ScriptClient } from '../../call.ts';
import { createPartRemoval } from '../../state/part-removal.ts';
import { createTokens } from '../tokens.ts';

/** The time after which ended ledgers can have been removed. */
const LATER_MS = 2 * 86_400_000;

onEachRedis(redis => {
  const startPaid = (account: string, ms = START_MS) => startPaidPart(redis(), account, ms);
  const settle = (t: TestPart, client: ScriptClient = t.client) => createTokens(client).settle(t.part, t.clock.ms);
  async function route(t: TestPart, ...groupKeys: string[]) {
    await t.send(...groupKeys);
    for (let i = 0; i < 3; i++) {
      await settle(t);
      await t.advanceAll();
    }
    await settle(t);
  }
  const used = async (account: string) => (await readBalance(redis(), account))?.usedTokens;
  const seen = async (account: string) =>
    Object.keys(await redis().readHash(accountKeys(account).seen)).filter(field => field.includes(':'));
  const ended = async (account: string) => Number(await redis().call('zcard', accountKeys(account).ended));

  /** A part with three events charged to `one`. A failover of the part loses the change of its payer. */
  async function loseEnd() {
    const [one, two] = [await startFreeAccount(redis()), await startFreeAccount(redis())];
    const t = await startPaid(one);
    await route(t, 'k', 'k', 'k');
    const before = Object.entries(await t.hash('meta')).flat() as string[];
    await pay(t, two);
    await settle(t);
    await redis().call('unlink', t.keys.meta);
    await redis().call('hset', t.keys.meta, ...before);
    expect([await used(one), await ended(one)]).toEqual([3, 1]);
    return { one, two, t };
  }
  /** Routes an event of another part of the account, days later. */
  async function passDays(account: string) {
    const other = await startPaid(account, START_MS + LATER_MS);
    await route(other, 'k');
    return other;
  }

  describe('a ledger whose end is lost in a failover of its part is charged once', () => {
    test('if its part is idle for days after the change of the payer was repeated', async () => {
      const { one, two, t } = await loseEnd();
      await pay(t, two);
      const other = await passDays(one);
      t.clock.ms += LATER_MS;
      for (let i = 0; i < 2; i++) await settle(t);
      expect([await used(one), await used(two)]).toEqual([4, 0]);
      // It is removed a day after its end was recorded again.
      other.clock.ms += LATER_MS;
      await settle(other);
      expect([await used(one), await ended(one), (await seen(one)).length]).toEqual([4, 0, 1]);
    });

    test('if its part is idle for days, and the loss was not detected', async () => {
      const { one, t } = await loseEnd();
      await passDays(one);
      t.clock.ms += LATER_MS;
      await settle(t);
      expect(await used(one)).toBe(4);
      await route(t, 'k');
      expect([await used(one), await ended(one)]).toEqual([5, 0]);
    });

    test('if its end is lost before it was recorded', async () => {
      const [one, two] = [await startFreeAccount(redis()), await startFreeAccount(redis())];
      const t = await startPaid(one);
      await route(t, 'k', 'k', 'k');
      await pay(t, two);
      const mortal: ScriptClient = {
        ...t.client,
        runNamed: async (script, call) => {
          const isLast = script.name === 'settle-owed' && call.args.noted !== '';
          return isLast ? Promise.reject(new Error('died')) : t.client.runNamed(script, call);
        },
      };
      await expect(settle(t, mortal)).rejects.toThrow('died');
      expect([await ended(one), (await t.hash('meta')).ended]).toEqual([1, expect.stringContaining(one)]);
      const other = await passDays(one);
      expect(await ended(one)).toBe(1);
      await settle(t);
      other.clock.ms += 2 * LATER_MS;
      await settle(other);
      expect([await used(one), await ended(one)]).toEqual([4, 0]);
    });

    test.each(SILENCES)('if its part %s when it would be removed', async (_what, answer) => {
      const { one, t } = await loseEnd();
      const gone = await startPaid(one);
      const removal = createPartRemoval({ ...redis(), ...gone.client });
      await removal.remove(gone.part, 1, START_MS);
      const other = await startPaid(one, START_MS + LATER_MS);
      expect(await settle(other, silentClient(other.client, t.part.tenant, answer))).toMatchObject({ answer: 'OK' });
      expect(await ended(one)).toBe(1);
      await settle(t);
      expect(await used(one)).toBe(3);
    });
  });

  test('an end that is recorded while its part is read is kept for a day', async () => {
    const { one, two, t } = await loseEnd();
    const other = await startPaid(one, START_MS + LATER_MS);
    t.clock.ms += LATER_MS;
    const slow: ScriptClient = {
      ...other.client,
      runNamed: async (script, call) => {
        if (script.name === 'holds-ledger') {
          await pay(t, two);
          await settle(t);
        }
        return other.client.runNamed(script, call);
      },
    };
    await settle(other, slow);
    expect([await used(one), await ended(one)]).toEqual([3, 1]);
    other.clock.ms += LATER_MS;
    await settle(other);
    expect([await used(one), await ended(one)]).toEqual([3, 0]);
  });

  test('a process that crashes while reading is replaced by another one', async () => {
    const [one, two] = [await startFreeAccount(redis()), await startFreeAccount(redis())];
    const t = await startPaid(one);
    await route(t, 'k');
    await pay(t, two);
    await settle(t);
    const other = await startPaid(one, START_MS + LATER_MS);
    const dead = silentClient(other.client, t.part.tenant, () => new Promise<never>(() => {}));
    const isDead = { value: false };
    const mortal: ScriptClient = {
      ...dead,
      runNamed: (script, call) => {
        isDead.value ||= script.name === 'holds-ledger';
        return isDead.value ? Promise.reject(new Error('died')) : dead.runNamed(script, call);
      },
    };
    await settle(other, mortal);
    expect([isDead.value, await ended(one)]).toEqual([true, 1]);
    await settle(other);
    expect(await ended(one)).toBe(1);
    other.clock.ms += 120_000;
    await settle(other);
    expect(await ended(one)).toBe(0);
  });
});
