/** The number of bytes per token (specification part 8, one token per started 16 KB, which is read as 16 KiB). */
const TOKEN_BYTES = 16_384;

/** Returns the number of tokens for an event with a body of this size in bytes. An empty body costs one token. */
export function tokensOf(bytes: number): number {
  return Math.ceil(Math.max(1, bytes) / TOKEN_BYTES);
}

/** The balance of an account in tokens. */
export interface Balance {
  readonly plan: 'Free' | 'Metered';
  readonly includedTokens: number;
  /** The number of tokens for the lifetime of the account, including replays. */
  readonly usedTokens: number;
  /** Undefined if the plan does not have a limit. */
  readonly remainingTokens?: number;
}

/** A queue whose next event costs more tokens than the account has left. */
export interface Shortage {
  /** `ten_…:queue` */
  readonly queue: string;
  /** The number of tokens for the next event. The value is 0 if the account was unknown. */
  readonly tokens: number;
  /** The time of the last request of the router, in milliseconds. */
  readonly atMs: number;
}

/** Routers send two requests in this time. An older shortage has ended, unless there are no tokens left. */
const SHORTAGE_LASTS_MS = 90_000;

/** Returns whether a queue is waiting for more tokens than the account has. */
export function isShort(balance: Balance, shortages: readonly Shortage[], nowMs: number): boolean {
  const left = balance.includedTokens - balance.usedTokens;
  return (
    balance.plan === 'Free' &&
    shortages.some(({ tokens, atMs }) => tokens > left && (left <= 0 || nowMs - atMs < SHORTAGE_LASTS_MS))
  );
}

/** Returns how many of these costs, from the first on, the tokens cover completely. */
export function coveredBy(costs: readonly number[], tokens: number): number {
  let left = tokens;
  const end = costs.findIndex(cost => (left -= cost) < 0);
  return end < 0 ? costs.length : end;
}
