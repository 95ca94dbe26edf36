import type { RedisClient } from '../../redis/client.ts';
import { accountKeys } from '../../redis/keys.ts';
import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';
import { partKeys } from '../keys.ts';
import { parsePartName } from './part-name.ts';

const ACCOUNT_USAGE = readNamedScript(new URL('account-usage.lua', import.meta.url));

/**
 * Reads the tokens used by an account, including those of parts that report them later (`Tokens.settle`). If there are
 * no such parts, this returns undefined.
 */
export type ReadLateUsage = (account: string, nowMs: number) => Promise<number | undefined>;

export function createReadLateUsage(redis: Pick<RedisClient, 'call'> & ScriptClient): ReadLateUsage {
  return async function readLateUsage(account, nowMs) {
    const keys = accountKeys(account);
    const names = (await redis.call('zrangebyscore', keys.late, nowMs, '+inf')) as string[];
    if (names.length === 0) return undefined;
    const totals: string[] = [];
    async function read(name: string): Promise<void> {
      const part = parsePartName(name);
      const fields = ['gen', 'payer', 'ledger', 'used', 'base'];
      const values = (await redis.call('hmget', partKeys(part).meta, ...fields)) as (string | null)[];
      const [gen, payer, ledger, used, base] = values;
      // A ledger that has ended is reported soon.
      if (gen === part.gen && payer === account && ledger != null)
        totals.push(`${name}.${ledger}`, String(Number(used ?? 0) - Number(base ?? 0)));
    }
    await Promise.all(names.map(read));
    // Between the two reads, the parts may report the same tokens.
    const [, used] = await callScript(redis, ACCOUNT_USAGE, { keys, args: {}, more: [...totals] });
    return Number(used);
  };
}
