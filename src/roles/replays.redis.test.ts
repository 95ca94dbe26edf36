import { expect, test } from 'vitest';
import { startPaidPart } from '../../test/support/part/paid-part.ts';
import type { TestPart } from '../../test/support/part/part.ts';
import { createPartInbox } from '../../test/support/part/part-inbox.ts';
import { SILENCES, silentClient } from '../../test/support/part/silent-client.ts';
import { readBalance } from '../accounts/balance.ts';
import { createPartReplayInboxes } from '../part/owner/replays.ts';
import { createTokens } from '../part/tokens/tokens.ts';
import { onEachRedis } from '../redis/testing/each-redis.ts';
import { openReplays } from './replays.ts';

const TOKEN_BYTES = 16_384;

onEachRedis(redis => {
  /**
   * Creates a partner with 20 tokens that is also a producer. Its stream has used one token, and holds some that were
   * granted in advance.
   */
  async function start() {
    const inbox = await createPartInbox(redis(), {}, ['a']);
    await inbox.setAccount('Free', 20);
    const nowMs = inbox.t.nowMs;
    const stream = await startPaidPart(redis(), inbox.payer, nowMs());
    const settle = async (t: TestPart) => {
      await createTokens(t.client).settle(t.part, nowMs());
      await t.advanceAll();
    };
    await stream.send('k');
    await settle(stream);
    await settle(stream);
    /** An event that has been delivered to the partner. */
    const deliver = async (tokens: number) => {
      const [ref] = (await inbox.publish(['a'], 'x'.repeat(tokens * TOKEN_BYTES))) as [string];
      await inbox.drain();
      return ref;
    };
    const open = (client = inbox.client) =>
      openReplays(redis(), nowMs, createPartReplayInboxes(inbox.client, inbox.findSlot), client);
    const replay = (ref: string, replays = open()) => replays.start(inbox.payer, `r-${ref}`, inbox.inbox, { ref });
    const remaining = async () => (await readBalance(redis(), inbox.payer))?.remainingTokens;
    return { inbox, stream, settle, deliver, open, replay, remaining };
  }

  test('a replay can use all tokens of the account, including those granted to its streams', async () => {
    const { stream, settle, deliver, replay, remaining } = await start();
    expect([await stream.counts('a'), await remaining()]).toEqual([expect.arrayContaining([1]), 19]);
    const ref = await deliver(16);
    expect(await replay(ref)).toMatchObject({ answer: 'OK', tokens: 16, taken: 1 });
    expect(await remaining()).toBe(3);
    // The stream can only use what is left.
    await stream.send('k', 'k', 'k', 'k');
    for (let n = 0; n < 4; n++) await settle(stream);
    expect([(await stream.counts('a'))[1], await remaining()]).toEqual([4, 0]);
  });

  test('a replay that costs more than the account has left does not take any tokens from streams', async () => {
    const { stream, deliver, replay, remaining } = await start();
    expect(await replay(await deliver(20))).toEqual({ answer: 'SHORT' });
    const { granted, used } = await stream.hash('meta');
    expect(Number(granted)).toBeGreaterThan(Number(used));
    expect(await remaining()).toBe(19);
  });

  test.each(SILENCES)('tokens of a stream that has some %s are not available', async (_what, answer) => {
    const { inbox, stream, deliver, open, replay } = await start();
    const ref = await deliver(16);
    const replays = open({ ...inbox.client, ...silentClient(inbox.client, stream.part.tenant, answer) });
    expect(await replay(ref, replays)).toEqual({ answer: 'SHORT' });
    expect(await replay(ref)).toMatchObject({ answer: 'OK' });
  });
});
