import { expect, test } from 'vitest';
import { event, startPart } from '../../../test/support/part/part.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { createSweep } from './sweep.ts';

const HOUR_MS = 3_600_000;

onEachRedis(redis => {
  test('removes nothing while the Redis clock differs by more than an hour from the clock of the machine', async () => {
    const { t } = await startPart(redis(), { a: {} }, ['k']);
    await t.change({ kind: 'meta', field: 'retentionMs', value: String(HOUR_MS) });
    await t.ingest(event('k'));
    let wallMs = t.clock.ms;
    const sweep = createSweep(t.client, () => wallMs);
    t.clock.ms += HOUR_MS + 1;
    expect(await sweep(t.part, {})).toEqual({ answer: 'CLOCK', offsetMs: HOUR_MS + 1 });
    expect(await t.log()).toHaveLength(1);
    wallMs = t.clock.ms + HOUR_MS + 1;
    expect(await sweep(t.part, {})).toEqual({ answer: 'CLOCK', offsetMs: -HOUR_MS - 1 });
    wallMs = t.clock.ms + HOUR_MS;
    expect(await sweep(t.part, {})).toMatchObject({ answer: 'OK', events: 1, expired: 1 });
    expect(await t.log()).toEqual([]);
  });
});
