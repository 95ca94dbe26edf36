import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { event, START_MS, startPart, type TestPart } from '../../../test/support/part/part.ts';
import { readBalance } from '../../accounts/balance.ts';
import { createNoteStored } from '../../part/stored/stored-bytes.ts';
import { createSweep } from '../../part/sweep/sweep.ts';
import { sweepAll } from '../../part/sweep/testing/sweep-all.ts';
import { createTokens } from '../../part/tokens/tokens.ts';
import { accountKeys } from '../../redis/keys.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { createSeriesReader } from '../../series/series-reader.ts';
import { createTrafficStore } from '../../series/traffic-store.ts';
import { createAdvancing } from './advancing.ts';
import { createUpkeep, type UpkeepDeps } from './upkeep.ts';

/** Enough for a busy machine. */
const SOON = { timeout: 20_000 };

const HOUR_MS = 3_600_000;
const times = { foldMs: 20, sweepMs: 20, sweepActiveMs: 20, shortMs: 20, waitedMs: 20 };

onEachRedis(redis => {
  function upkeepOf(t: TestPart, fields: Partial<UpkeepDeps> = {}) {
    const alarms: string[] = [];
    const calls = { sweep: 0, settle: 0, short: 0 };
    const sweep = createSweep(t.client);
    const tokens = createTokens(t.client);
    const upkeep = createUpkeep(
      {
        sweep: (...args) => {
          calls.sweep++;
          return sweep(...args);
        },
        tokens: {
          settle: async (...args) => {
            calls.settle++;
            const settled = await tokens.settle(...args);
            if (settled.answer === 'SHORT') calls.short++;
            return settled;
          },
        },
        traffic: createTrafficStore(redis()),
        noteStored: createNoteStored(t.client),
        nowMs: () => t.clock.ms,
        alarm: slot => void alarms.push(slot),
        times,
        ...fields,
      },
      t.part,
    );
    onTestFinished(() => upkeep.stop());
    return { ...upkeep, alarms, calls };
  }
  async function setPlan(account: string, plan: string, included: number) {
    await redis().call('hset', accountKeys(account).meta, 'plan', plan, 'included', included);
  }
  const pay = (t: TestPart, payer: string, plan: string) =>
    t.change({ kind: 'meta', field: 'payer', value: payer }, { kind: 'meta', field: 'plan', value: plan });
  const newAccount = () => `acc_${randomBytes(8).toString('hex')}`;

  test('adds counts to the series within its interval after the last activity', async () => {
    const { t } = await startPart(redis(), { a: {} }, ['k']);
    const { calls, start, wake } = upkeepOf(t, { times: { ...times, foldMs: 1_500 } });
    const countEvents = async () => {
      const series = await createSeriesReader(redis()).readSeries(t.part.tenant, '1h', t.clock.ms);
      return series.reduce((sum, { eventsIn }) => sum + eventsIn, 0);
    };
    start();
    await vi.waitFor(() => expect(calls.settle).toBe(1), SOON);
    wake({});
    await pause(1_000);
    wake({});
    await vi.waitFor(() => expect(calls.settle).toBe(2), { ...SOON, interval: 5 });
    await t.send('nobody');
    await vi.waitFor(async () => expect(await countEvents()).toBe(1), SOON);
  });

  test('adds counts that change after they were read, even if settling takes longer than the interval', async () => {
    const { t } = await startPart(redis(), { a: {} }, ['k']);
    const tokens = createTokens(t.client);
    let isFirst = true;
    const nothing = { events: 0, expired: 0, neverRouted: 0 };
    const upkeep = upkeepOf(t, {
      sweep: async () => ({ answer: 'OK', more: false, dueInMs: undefined, ...nothing }),
      tokens: {
        async settle(...args) {
          const settled = await tokens.settle(...args);
          if (isFirst) {
            isFirst = false;
            await t.send('nobody');
            await pause(400);
          }
          return settled;
        },
      },
      times: { ...times, foldMs: 300 },
    });
    upkeep.wake({});
    upkeep.start();
    await vi.waitFor(async () => {
      const series = await createSeriesReader(redis()).readSeries(t.part.tenant, '1h', t.clock.ms);
      expect(series.reduce((sum, { eventsIn }) => sum + eventsIn, 0)).toBe(1);
    }, SOON);
  });

  test('removes expired events when it starts and when they are due', async () => {
    const { t } = await startPart(redis(), { a: { send: 'held' } }, ['k']);
    await t.change({ kind: 'meta', field: 'retentionMs', value: String(HOUR_MS) });
    await t.send('k');
    t.clock.ms += HOUR_MS + 1;
    const ended: unknown[] = [];
    const upkeep = upkeepOf(t, {
      onExpired: ({ expired, neverRouted }) => void ended.push({ expired, neverRouted }),
    });
    upkeep.start();
    await vi.waitFor(async () => expect(await t.log()).toEqual([]), SOON);
    await vi.waitFor(() => expect(ended).toEqual([{ expired: 1, neverRouted: 0 }]), SOON);
    await t.send('k');
    t.clock.ms += HOUR_MS - 100;
    upkeep.wake({});
    const before = upkeep.calls.sweep;
    await vi.waitFor(() => expect(upkeep.calls.sweep).toBeGreaterThan(before), SOON);
    expect(await t.log()).toHaveLength(1);
    t.clock.ms += 101;
    await vi.waitFor(async () => expect(await t.log()).toEqual([]), SOON);
  });

  test('sweeps a part that is being used once its settings change', async () => {
    const { t } = await startPart(redis(), { a: {} }, ['k']);
    const { calls, start, wake } = upkeepOf(t, { times: { ...times, sweepActiveMs: 60_000 } });
    wake({ version: '1' });
    start();
    const sweepsWhileUsed = async () => {
      const before = calls.sweep;
      for (let i = 0; i < 20; i++) {
        wake(i % 2 === 0 ? {} : { version: '1' });
        await pause(10);
      }
      return calls.sweep - before;
    };
    await expect.poll(sweepsWhileUsed, SOON).toBe(0);
    const before = calls.sweep;
    wake({ version: '2' });
    await vi.waitFor(() => expect(calls.sweep).toBe(before + 1), SOON);
  });

  test('records the stored bytes again when the ids of a part without events are removed', async () => {
    const { t } = await startPart(redis(), {}, []);
    await t.change({ kind: 'meta', field: 'retentionMs', value: String(HOUR_MS) });
    await t.ingest(event('', { senderId: 'x' }));
    t.clock.ms += HOUR_MS + 1;
    await sweepAll(t);
    const bytes = async () => Number((await t.hash('meta')).bytes);
    expect(await bytes()).toBeGreaterThan(0);
    t.clock.ms += 26 * HOUR_MS;
    const noted: number[] = [];
    const sweep = createSweep(t.client);
    const upkeep = upkeepOf(t, {
      async noteStored() {
        noted.push(await bytes());
        return { text: '', atMs: 0 };
      },
      async sweep(...args) {
        await vi.waitFor(() => expect(noted).not.toEqual([]), SOON);
        return sweep(...args);
      },
    });
    upkeep.start();
    await vi.waitFor(() => expect(noted.at(-1)).toBe(0), SOON);
  });

  test('adds counts to the account and the series once, and then does nothing', async () => {
    const { t } = await startPart(redis(), { a: {} }, ['k']);
    const account = newAccount();
    await setPlan(account, 'Metered', 0);
    await pay(t, account, 'Metered');
    const upkeep = upkeepOf(t);
    upkeep.start();
    await t.send('k', 'k');
    for (let i = 0; i < 20; i++) upkeep.wake({});
    await vi.waitFor(async () => expect((await readBalance(redis(), account))?.usedTokens).toBe(2), SOON);
    const callsWhileWaiting = async () => {
      const { sweep, settle } = upkeep.calls;
      await pause(200);
      return upkeep.calls.sweep - sweep + upkeep.calls.settle - settle;
    };
    await expect.poll(callsWhileWaiting, SOON).toBe(0);
    expect(upkeep.calls.settle).toBeLessThan(10);
    const series = await createSeriesReader(redis()).readSeries(t.part.tenant, '1h', START_MS);
    expect(series.at(-1)).toMatchObject({ eventsIn: 2, tokens: 2 });
  });

  test('reads all counts of a part with a single command', async () => {
    const { t } = await startPart(redis(), { a: {} }, ['k']);
    const reads: string[] = [];
    const client = {
      ...t.client,
      runNamed: (...args: Parameters<typeof t.client.runNamed>) => {
        if (args[1].keys['meta'] === t.keys.meta) reads.push(args[0].name);
        return t.client.runNamed(...args);
      },
    };
    const call = () => Promise.reject(new Error('the counts were read again'));
    const stored: number[] = [];
    const upkeep = upkeepOf(t, {
      tokens: createTokens(client),
      traffic: createTrafficStore({ ...redis(), call }),
      async noteStored(_part, { bytes }) {
        stored.push(bytes);
        return { text: '', atMs: 0 };
      },
      times: { ...times, foldMs: 60_000 },
    });
    await t.send('k');
    const { bytes } = await t.hash('meta');
    upkeep.start();
    await vi.waitFor(() => expect(stored).toEqual([Number(bytes)]), SOON);
    expect(reads).toEqual(['report']);
    const series = await createSeriesReader(redis()).readSeries(t.part.tenant, '1h', START_MS);
    expect(series.at(-1)).toMatchObject({ eventsIn: 1 });
  });

  describe('a part that waits for tokens', () => {
    test('receives some tokens immediately, as often as it requires more', async () => {
      const { t } = await startPart(redis(), { a: { send: 'held' } }, ['k']);
      const account = newAccount();
      await setPlan(account, 'Free', 100);
      await pay(t, account, 'Free');
      const upkeep = upkeepOf(t, { times: { ...times, foldMs: 60_000 } });
      await t.send(...Array.from({ length: 64 }, () => 'k'));
      upkeep.wake({ hold: 'tokens' });
      await vi.waitFor(async () => {
        await t.advanceAll();
        expect((await t.counts('a'))[1]).toBe(64);
      }, SOON);
      expect(upkeep.alarms).toEqual([]);
    });

    test('requests tokens once, and continues when there are some', async () => {
      const { t } = await startPart(redis(), { a: { send: 'held' } }, ['k']);
      const account = newAccount();
      await setPlan(account, 'Free', 1);
      await pay(t, account, 'Free');
      const upkeep = upkeepOf(t);
      await t.send('k', 'k');
      upkeep.wake({ hold: 'tokens' });
      await vi.waitFor(async () => {
        await t.advanceAll();
        expect(upkeep.calls.short).toBeGreaterThan(3);
      }, SOON);
      expect([upkeep.alarms, (await t.counts('a'))[1]]).toEqual([[`a:${account}`], 1]);
      await setPlan(account, 'Free', 2);
      await vi.waitFor(async () => {
        await t.advanceAll();
        expect((await t.counts('a'))[1]).toBe(2);
      }, SOON);
      expect(upkeep.alarms).toEqual([`a:${account}`, `a:${account}`]);
    });
  });

  test('continues a few seconds after a top-up without a message', async () => {
    const { t } = await startPart(redis(), { a: { send: 'held' } }, ['k']);
    const account = newAccount();
    await setPlan(account, 'Free', 1);
    await pay(t, account, 'Free');
    const upkeep = upkeepOf(t, { times: {} });
    const advancing = createAdvancing({
      advance: () => t.advance(),
      part: t.part,
      onRouted: () => {},
      onHold: () => {},
      onClosed: () => {},
      onError: error => {
        throw error;
      },
    });
    onTestFinished(() => advancing.stop());
    const routed = async () => (await t.counts('a'))[1];
    await t.send('k', 'k');
    advancing.start();
    upkeep.wake({ hold: 'tokens' });
    await vi.waitFor(async () => expect(await routed()).toBe(1), SOON);
    await vi.waitFor(() => expect(upkeep.alarms).toHaveLength(1), SOON);
    await pause(200);
    await setPlan(account, 'Free', 2);
    await vi.waitFor(async () => expect(await routed()).toBe(2), SOON);
  });

  test('continues after errors, and does nothing after it has stopped', async () => {
    const { t } = await startPart(redis(), { a: {} }, ['k']);
    let calls = 0;
    const tokens = createTokens(t.client);
    const upkeep = upkeepOf(t, {
      tokens: {
        settle: async (...args) => {
          if (calls++ === 0) throw new Error('Redis is unavailable');
          return tokens.settle(...args);
        },
      },
    });
    await t.send('k');
    upkeep.start();
    const seriesOf = () => createSeriesReader(redis()).readSeries(t.part.tenant, '1h', START_MS);
    await vi.waitFor(async () => expect((await seriesOf()).at(-1)?.eventsIn).toBe(1), SOON);
    await upkeep.stop();
    const { sweep } = upkeep.calls;
    const settled = calls;
    expect(settled).toBeGreaterThan(1);
    upkeep.wake({ hold: 'tokens' });
    await pause(100);
    expect([upkeep.calls.sweep, calls]).toEqual([sweep, settled]);
  });
});
