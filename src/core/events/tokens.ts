/** Bytes that one token pays for (specification part 8: one token per started 16 KB, read as 16 KiB). */
export const TOKEN_BYTES = 16_384;

/** Tokens of one event by the size of its body in bytes; an empty body costs one. */
export function tokensOf(bytes: number): number {
  return Math.ceil(Math.max(1, bytes) / TOKEN_BYTES);
}

/** An account's balance; tokens. */
export interface Balance {
  readonly plan: 'Free' | 'Metered';
  readonly includedTokens: number;
  /** Over the account's lifetime, replays included. */
  readonly usedTokens: number;
  /** Absent for a plan that only counts. */
  readonly remainingTokens?: number;
}

/** A queue whose next event costs more than there is. */
export interface Shortage {
  /** `ten_…:queue` */
  readonly queue: string;
  /** What its next event costs; 0 while the account itself was unknown. */
  readonly tokens: number;
  /** When its router last asked. */
  readonly atMs: number;
}

/** Routers ask again twice in this time: a shortage that is older is over, unless nothing is left at all. */
const SHORTAGE_LASTS_MS = 90_000;

/** Whether some queue waits for tokens that the account does not have. */
export function isShort(balance: Balance, shortages: readonly Shortage[], nowMs: number): boolean {
  const left = balance.includedTokens - balance.usedTokens;
  return (
    balance.plan === 'Free' &&
    shortages.some(({ tokens, atMs }) => tokens > left && (left <= 0 || nowMs - atMs < SHORTAGE_LASTS_MS))
  );
}

/** How many of these costs, from the first on, the tokens cover wholly. */
export function coveredBy(costs: readonly number[], tokens: number): number {
  let left = tokens;
  const end = costs.findIndex(cost => (left -= cost) < 0);
  return end < 0 ? costs.length : end;
}
