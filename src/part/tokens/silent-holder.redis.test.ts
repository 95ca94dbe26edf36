import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { createTestPart, event, START_MS, type TestPart } from '../../../test/support/part/part.ts';
import { SILENCES, silentClient } from '../../../test/support/part/silent-client.ts';
import { accountKeys } from '../../redis/keys.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { createTokens } from './tokens.ts';

onEachRedis(redis => {
  async function startAccount(included: number) {
    const account = `acc_${randomBytes(8).toString('hex')}`;
    await redis().call('hset', accountKeys(account).meta, 'plan', 'Free', 'included', included);
    async function startPaid(): Promise<TestPart> {
      const t = createTestPart(redis());
      await t.setUp({ a: { send: 'held' } }, ['k']);
      await t.change({ kind: 'meta', field: 'payer', value: account }, { kind: 'meta', field: 'plan', value: 'Free' });
      return t;
    }
    const holds = async () => Object.keys(await redis().readHash(accountKeys(account).hold));
    return { account, startPaid, holds };
  }
  const settle = (t: TestPart, client = t.client, nowMs = START_MS) => createTokens(client).settle(t.part, nowMs);
  const routed = async (t: TestPart) => (await t.counts('a'))[1] ?? 0;
  const tokens = (count: number) => event('k', { body: Buffer.alloc(count * 16_384) });
  /** Routes an event, and receives more tokens than it costs. */
  async function hold(t: TestPart) {
    await t.send('k');
    for (let i = 0; i < 2; i++) {
      await settle(t);
      await t.advanceAll();
    }
  }

  test.each(SILENCES)('tokens of other parts are reclaimed while a part that has some %s', async (_what, answer) => {
    const { startPaid, holds } = await startAccount(40);
    const [silent, idle, needy] = [await startPaid(), await startPaid(), await startPaid()];
    for (const t of [silent, idle]) await hold(t);
    expect(await holds()).toHaveLength(2);
    const client = silentClient(needy.client, silent.part.tenant, answer);
    await needy.ingest(tokens(7));
    // The first attempt determines how many tokens it requires.
    await needy.advanceAll();
    expect(await settle(needy, client)).toMatchObject({ answer: 'OK' });
    await needy.advanceAll();
    expect([await routed(needy), (await holds()).filter(name => name.includes(idle.part.tenant))]).toEqual([1, []]);
    // Now, no other part has tokens.
    await needy.ingest(tokens(7));
    await needy.advanceAll();
    await expect(settle(needy, client)).rejects.toThrow(/Command timed out|no answer within/);
    expect(await settle(needy)).toMatchObject({ answer: 'OK' });
  });

  test('parts that have tokens are found after any number of parts that fail', async () => {
    const { account, startPaid } = await startAccount(110);
    const silent = 'ten_silent';
    const names = Array.from({ length: 70 }, (_, i) => [`${silent}:q${i}:gen1:0`, '1']);
    await redis().call('hset', accountKeys(account).hold, ...names.flat());
    const [idle, needy] = [await startPaid(), await startPaid()];
    await hold(idle);
    const client = silentClient(needy.client, silent, () => Promise.reject(new Error('unavailable')));
    await needy.ingest(tokens(25));
    await needy.advanceAll();
    let tries = 0;
    for (; tries < 20 && (await routed(needy)) === 0; tries++) {
      await settle(needy, client, START_MS + tries).catch(() => {});
      await needy.advanceAll();
    }
    expect(await routed(needy)).toBe(1);
  });
});
