/**
 * The number of bytes for each token (in part 8 of the specification, this is one token per started 16 KB, which we
 * interpret as 16 KiB).
 */
const TOKEN_BYTES = 16_384;

/**
 * Returns the number of tokens that an event costs. The size of its body is given in bytes. If the body is empty, this
 * is one token.
 */
export function tokensOf(bytes: number): number {
  return Math.ceil(Math.max(1, bytes) / TOKEN_BYTES);
}

/** The account balance, in tokens. */
export interface Balance {
  readonly plan: 'Free' | 'Metered';
  readonly includedTokens: number;
  /** The number of tokens that the account has used in total, including replays. */
  readonly usedTokens: number;
  /** This is undefined if there is no limit for the plan. */
  readonly remainingTokens?: number;
}

/** A stream whose next event needs more tokens than its account has left. */
export interface Shortage {
  /** `ten_…:queue` */
  readonly queue: string;
  /** The number of tokens that are needed for the next event. This is 0 if the account was not known. */
  readonly tokens: number;
  /** The time of the last request for this queue, in milliseconds. */
  readonly atMs: number;
}

/**
 * If a queue is waiting, it sends several requests within this time. This means that an older shortage has ended,
 * unless there are no tokens left.
 */
const SHORTAGE_LASTS_MS = 90_000;

/** Returns true if there is a stream that is waiting for more tokens than the account has. */
export function isShort(balance: Balance, shortages: readonly Shortage[], nowMs: number): boolean {
  const left = balance.includedTokens - balance.usedTokens;
  return (
    balance.plan === 'Free' &&
    shortages.some(({ tokens, atMs }) => tokens > left && (left <= 0 || nowMs - atMs < SHORTAGE_LASTS_MS))
  );
}
