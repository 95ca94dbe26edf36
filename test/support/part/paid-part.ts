import { randomBytes } from 'node:crypto';
import type { RedisClient } from '../../../src/redis/client.ts';
import { accountKeys } from '../../../src/redis/keys.ts';
import { createTestPart, type TestPart } from './part.ts';

/** Creates an account with the plan Free and 1,000 included tokens. Returns its id. */
export async function startFreeAccount(redis: RedisClient): Promise<string> {
  const account = `acc_${randomBytes(8).toString('hex')}`;
  await redis.call('hset', accountKeys(account).meta, 'plan', 'Free', 'included', 1_000);
  return account;
}

/** Changes the account that pays for the events of a part. */
export const pay = (t: TestPart, account: string) => t.change({ kind: 'meta', field: 'payer', value: account });

/** Creates a part that an account pays for, with a subscription to the group key `k` that is not delivered. */
export async function startPaidPart(redis: RedisClient, account: string, ms: number): Promise<TestPart> {
  const t = createTestPart(redis);
  t.clock.ms = ms;
  await t.setUp({ a: { send: 'held' } }, ['k']);
  await pay(t, account);
  await t.change({ kind: 'meta', field: 'plan', value: 'Free' });
  return t;
}
