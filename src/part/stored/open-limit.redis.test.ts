import { expect, test } from 'vitest';
import { event, startPart } from '../../../test/support/part/part.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import type { Completion } from '../claims/exchange.ts';

const KEYS = Array.from({ length: 64 }, (_, i) => `k${i}`);

onEachRedis(redis => {
  test.each([
    ['maxBytes', 10_048, 3],
    ['storedMax', 1_024, 10],
  ] as const)(
    'a part that has reached %s does not exceed it when all of its %d open deliveries fail',
    async (field, count, attempts) => {
      const row = { cap: 9_000, unordered: true } as const;
      const { t, d } = await startPart(redis(), { s: row }, KEYS);
      const bytes = async () => Number((await t.hash('meta')).bytes ?? 0);
      const send = () => t.ingest(...KEYS.map(key => event(key)));
      for (let sent = 0; sent < count; sent += KEYS.length) await send();
      const limit = await bytes();
      await t.change({ kind: 'meta', field, value: String(limit) });
      if (field === 'storedMax') await redis().call('hset', t.keys.meta, 'space', String(limit));
      const answers = await send();
      const refused = field === 'maxBytes' ? 'FULL' : 'LIMIT';
      expect(answers.answer === 'OK' && answers.events.every(({ answer }) => answer === refused)).toBe(true);

      async function attempt(outcome: Completion['outcome']) {
        for (let ended = 0; ended < count; t.clock.ms++) {
          await t.setRow('s', { ...row, enabledMs: t.clock.ms });
          const { claims } = await d.exchange(256, { roomBytes: 0 });
          const dueMs = t.clock.ms + 60_000;
          for (const claim of claims) d.end(claim, outcome, { reason: 'http_5xx', latencyMs: 250, dueMs });
          await d.exchange(0, { roomBytes: 0 });
          ended += claims.length;
          expect(await bytes()).toBeLessThanOrEqual(limit);
        }
        t.clock.ms += 3_600_000;
      }
      for (let number = 1; number < attempts; number++) await attempt('failed');
      await attempt('dead');
      expect((await t.members('final')).length).toBe(count);
      expect(await bytes()).toBeGreaterThan(0.6 * limit);
    },
    300_000,
  );
});
