import { expect, test } from 'vitest';
import { startPart } from '../../../test/support/part/part.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { sweepAll } from './testing/sweep-all.ts';

const HOUR_MS = 3_600_000;

onEachRedis(redis => {
  /** A part with a paused subscription that receives an event per hour, and is swept each time. */
  async function start(retentionMs: number) {
    const { t } = await startPart(redis(), { a: {}, paused: { route: 'paused' } }, ['k']);
    const retain = (ms: number) => t.change({ kind: 'meta', field: 'retentionMs', value: String(ms) });
    await retain(retentionMs);
    const state = {};
    async function run(hours: number): Promise<number> {
      let removed = 0;
      for (let hour = 0; hour < hours; hour++) {
        await t.send('k');
        t.clock.ms += HOUR_MS;
        removed += (await sweepAll(t, state)).events;
      }
      return removed;
    }
    return { t, retain, run };
  }

  test('a longer retention is in force immediately for a part that is never empty', async () => {
    const { t, retain, run } = await start(4 * HOUR_MS + 1);
    expect(await run(4)).toBe(0);
    await retain(10 * HOUR_MS + 1);
    expect(await run(6)).toBe(0);
    expect(await t.log()).toHaveLength(10);
    expect(await run(1)).toBe(1);
    await t.setRow('paused', {});
    await t.advanceAll();
    expect((await t.counts('paused'))[1]).toBe(10);
  });

  test('removes events that are too old after a shorter retention', async () => {
    const { t, retain, run } = await start(10 * HOUR_MS);
    expect(await run(8)).toBe(0);
    await retain(3 * HOUR_MS + 1);
    expect(await run(1)).toBe(6);
    expect(await t.log()).toHaveLength(3);
    await t.setRow('paused', {});
    expect(await t.advanceAll()).toBe(3);
  });
});
