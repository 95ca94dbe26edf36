import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { event, startPart, type TestPart } from '../../../test/support/part/part.ts';
import { readBalance } from '../../accounts/balance.ts';
import { metaKeyOf } from '../../part/keys.ts';
import { createNoteStored, readStored } from '../../part/stored/stored-bytes.ts';
import { createSweep } from '../../part/sweep/sweep.ts';
import { createReadLateUsage } from '../../part/tokens/late-usage.ts';
import { createTokens } from '../../part/tokens/tokens.ts';
import { accountKeys, CLUSTER_KEYS, tenantKeys } from '../../redis/keys.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { createSeriesReader } from '../../series/series-reader.ts';
import { createTrafficStore } from '../../series/traffic-store.ts';
import { createUpkeep } from './upkeep.ts';

/** Enough for a busy machine. */
const SOON = { timeout: 20_000 };
/** Longer than any test. */
const NEVER_MS = 3_600_000;
const FOLD_MS = 300;

onEachRedis(redis => {
  /** A part with a payer, and its upkeep. The activity continues until it is stopped. */
  async function start(plan = 'Metered') {
    const { t } = await startPart(redis(), { a: {} }, ['k']);
    await redis().call('hset', CLUSTER_KEYS.parts, `${t.part.tenant}:${t.part.queue}:0`, t.part.gen);
    const account = `acc_${randomBytes(8).toString('hex')}`;
    await redis().call('hset', accountKeys(account).meta, 'plan', plan, 'included', 1_000_000);
    await t.change({ kind: 'meta', field: 'payer', value: account }, { kind: 'meta', field: 'plan', value: plan });
    const tokens = createTokens(t.client);
    const calls = { settle: 0 };
    const upkeep = createUpkeep(
      {
        sweep: createSweep(t.client),
        tokens: {
          settle: (...args) => {
            calls.settle++;
            return tokens.settle(...args);
          },
        },
        traffic: createTrafficStore(redis()),
        noteStored: createNoteStored(t.client),
        nowMs: () => t.clock.ms,
        alarm: () => {},
        times: { foldMs: FOLD_MS, foldLateMs: NEVER_MS },
      },
      t.part,
    );
    onTestFinished(() => upkeep.stop());
    const using = setInterval(() => upkeep.wake({}), 5);
    const stopUsing = () => clearInterval(using);
    onTestFinished(stopUsing);
    upkeep.start();
    let sent = 0;
    const send = async (body = '') => {
      await t.ingest(event('k', { body: Buffer.from(body) }));
      sent += Math.max(1, Math.ceil(body.length / 16_384));
      return sent;
    };
    const usage = {
      /** The tokens that the account knows, and those that a reader gets. */
      counted: async () => (await readBalance(redis(), account))?.usedTokens,
      read: () => createReadLateUsage({ ...redis(), ...t.client })(account, t.clock.ms),
      async series(): Promise<number> {
        const series = await createSeriesReader(redis(), metaKeyOf).readSeries(t.part.tenant, '1h', t.clock.ms);
        return series.reduce((sum, { tokens }) => sum + tokens, 0);
      },
    };
    /** Waits until the part is not read for several intervals, although it is being used. */
    const untilRested = () =>
      expect
        .poll(async () => {
          await send();
          await pause(2 * FOLD_MS);
          const before = calls.settle;
          await pause(3 * FOLD_MS);
          return calls.settle - before;
        }, SOON)
        .toBe(0);
    await untilRested();
    return { t, upkeep, calls, send, stopUsing, usage };
  }

  test('the counts of a part that is being used are read from it, and added when it pauses', async () => {
    const { send, stopUsing, usage } = await start();
    const counted = await usage.counted();
    for (let i = 0; i < 3; i++) {
      const sent = await send();
      expect([await usage.read(), await usage.series(), await usage.counted()]).toEqual([sent, sent, counted]);
    }
    const sent = await send();
    stopUsing();
    await vi.waitFor(async () => expect(await usage.counted()).toBe(sent), SOON);
    await send();
    expect([await usage.read(), await usage.series()]).toEqual([sent + 1, sent + 1]);
  });

  test('a part that is being used records its stored bytes, and adds its counts when its settings change', async () => {
    const { t, upkeep, calls, send, usage } = await start();
    const storedBytes = async () => Number((await t.hash('meta')).bytes);
    const recorded = async () => (await readStored(redis())).find(({ tenant }) => tenant === t.part.tenant);
    const [counted, before] = [await usage.counted(), calls.settle];
    const sent = await send('x'.repeat(70_000));
    expect(await recorded()).toMatchObject({ bytes: 65_536 });
    upkeep.wake({ stored: await storedBytes() });
    await vi.waitFor(async () => expect(await recorded()).toMatchObject({ bytes: 131_072 }), SOON);
    expect([await usage.counted(), calls.settle]).toEqual([counted, before]);
    upkeep.wake({ version: 'new' });
    await vi.waitFor(async () => expect(await usage.counted()).toBe(sent), SOON);
    expect([await recorded(), calls.settle]).toMatchObject([{ bytes: 131_072 }, before + 1]);
  });

  test('a part with a limited number of tokens, or without a place in the lists, adds its counts regularly', async () => {
    const { t } = await startPart(redis(), { a: {} }, ['k']);
    const account = `acc_${randomBytes(8).toString('hex')}`;
    const pay = async (part: TestPart, plan: string) => {
      await redis().call('hset', accountKeys(account).meta, 'plan', plan, 'included', 1_000);
      await part.change({ kind: 'meta', field: 'payer', value: account }, { kind: 'meta', field: 'plan', value: plan });
    };
    const lateMs = t.clock.ms + 60_000;
    const settles = async () => {
      const settled = await createTokens(t.client).settle(t.part, t.clock.ms, lateMs);
      return settled.answer === 'OK' && settled.mayBeLate;
    };
    const folds = async () => {
      await t.send('k');
      const store = createTrafficStore(redis());
      return (await store.fold({ ...t.part, meta: t.keys.meta }, t.clock.ms, undefined, lateMs)).mayBeLate;
    };
    await pay(t, 'Free');
    expect(await settles()).toBe(false);
    await pay(t, 'Metered');
    const lists = [accountKeys(account).late, tenantKeys(t.part.tenant).seriesLate];
    const others = Array.from({ length: 64 }, (_, i) => [t.clock.ms + 1, `ten_x:q${i}:g:0`]).flat();
    for (const list of lists) await redis().call('zadd', list, ...others);
    expect([await settles(), await folds()]).toEqual([false, false]);
    t.clock.ms += 1;
    expect([await settles(), await folds()]).toEqual([true, true]);
    for (const list of lists) expect(await redis().call('zcard', list)).toBe(1);
    expect(await createReadLateUsage({ ...redis(), ...t.client })(account, t.clock.ms)).toBe(2);
  });
});
