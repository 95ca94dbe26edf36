import { expect, test } from 'vitest';
import { turnsOf } from '../../../test/support/event-loop-turns.ts';
import { createTenant } from '../../record/testing/tenant.ts';
import type { RedisClient } from '../../redis/client.ts';
import { createPartsControl } from './parts-control.ts';

test('the event loop continues while a subscription of an integration with many group keys is removed', async () => {
  let changes = 0;
  // Replies immediately, so that only the calculations take any turns.
  const redis = {
    runNamed: async (_script, { more = [] }) => {
      changes += more.length / 4;
      return ['OK', more.length / 4, '', 0];
    },
  } as Partial<RedisClient> as RedisClient;
  const t = createTenant(redis);
  const recorded = new Map(Array.from({ length: 300_000 }, (_, n) => [`customer/${n}`, 1]));
  const control = createPartsControl(
    redis,
    {
      ...t.control,
      readTenant: async () => ({ routes: t.routes({ a: {} }), ready: new Set() }),
      readActivations: async () => recorded,
      forgetInbox: async () => {},
    },
    t.nowMs,
  );
  await control.readTenant(t.tenant, 1);
  expect(await turnsOf(control.dropInbox(1, t.tenant, t.inboxOf('a'), 0))).toBeGreaterThan(3);
  expect(changes).toBe(recorded.size + 1);
});
