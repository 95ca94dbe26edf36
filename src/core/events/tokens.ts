/** Bytes per token (specification part 8: one token per started 16 KB, read as 16 KiB). */
const TOKEN_BYTES = 16_384;

/** Returns the tokens of one event by the size of its body in bytes; an empty body costs one. */
export function tokensOf(bytes: number): number {
  return Math.ceil(Math.max(1, bytes) / TOKEN_BYTES);
}

/** An account's balance in tokens. */
export interface Balance {
  readonly plan: 'Free' | 'Metered';
  readonly includedTokens: number;
  /** Over the account's lifetime, including replays. */
  readonly usedTokens: number;
  /** Absent for a plan without a limit. */
  readonly remainingTokens?: number;
}

/** A queue whose next event costs more tokens than are left. */
export interface Shortage {
  /** `ten_…:queue` */
  readonly queue: string;
  /** Tokens of its next event; 0 while the account itself was unknown. */
  readonly tokens: number;
  /** When its router last asked, ms. */
  readonly atMs: number;
}

/** Routers ask twice in this time: an older shortage is over, unless no tokens are left at all. */
const SHORTAGE_LASTS_MS = 90_000;

/** Returns whether a queue waits for more tokens than the account has. */
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
