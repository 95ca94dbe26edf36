import { expect, test } from 'vitest';
import { createPartInbox } from '../../../test/support/part/part-inbox.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { createPartInboxRecovery } from './recovery.ts';

const HOUR_MS = 3_600_000;

onEachRedis(redis => {
  test('a dead letter that fails again during the call is counted once, and waits for its retry', async () => {
    const inbox = await createPartInbox(redis());
    await inbox.publish(['a', 'b', 'c']);
    await inbox.drain({ outcome: 'dead', record: 'dead 1 1 500 9' });
    const failAll = async () => {
      const dueMs = inbox.t.nowMs() + HOUR_MS;
      for (const claim of await inbox.claim()) await inbox.end(claim, { outcome: 'failed', dueMs, attempt: '1,500,9' });
    };
    const client: typeof inbox.client = {
      ...inbox.client,
      async runNamed(script, call) {
        const reply = await inbox.client.runNamed(script, call);
        if (script.name.includes('recover')) await failAll();
        return reply;
      },
    };
    const { recover } = createPartInboxRecovery(client, inbox.findSlot, 2);
    expect(await recover(inbox.inbox, { sinceMs: 0 })).toMatchObject({ recovered: 3, replayRequired: 0 });
    expect(await inbox.claim()).toEqual([]);
    // The owner asks again.
    expect(await recover(inbox.inbox, { sinceMs: 0 })).toMatchObject({ recovered: 3 });
  });
});
