import type { Balance, Shortage } from '../core/events/tokens.ts';
import type { RedisClient } from '../redis/client.ts';
import { accountKeys } from '../redis/keys.ts';

/**
 * The balance and the usage of an account, and the queues that are waiting for tokens. Undefined if Redis does not
 * contain a plan for the account.
 */
export async function readBalance(
  redis: RedisClient,
  account: string,
): Promise<(Balance & { readonly shortages: readonly Shortage[] }) | undefined> {
  const a = accountKeys(account);
  const [meta, short] = await Promise.all([redis.readHash(a.meta), redis.readHash(a.short)]);
  if (meta.plan === undefined) return undefined;
  const includedTokens = Number(meta.included);
  const usedTokens = Number(meta.used ?? 0);
  return {
    plan: meta.plan as Balance['plan'],
    includedTokens,
    usedTokens,
    ...(meta.plan === 'Free' ? { remainingTokens: Math.max(0, includedTokens - usedTokens) } : {}),
    shortages: Object.entries(short).map(([queue, text]) => {
      const [tokens, atMs] = text.split(' ').map(Number) as [number, number];
      return { queue, tokens, atMs };
    }),
  };
}
