/**
 * The number of bytes for each token (in part 8 of the specification, this is one token per started 16 KB, which we
 * interpret as 16 KiB).
 */
const TOKEN_BYTES = 16_384;

/**
 * Returns the price of an event in tokens. The body size is specified in bytes. The price of an empty body is one
 * token.
 */
export function tokensOf(bytes: number): number {
  return Math.ceil(Math.max(1, bytes) / TOKEN_BYTES);
}

/** The account balance, in tokens. */
export interface Balance {
  readonly plan: 'Free' | 'Metered';
  readonly includedTokens: number;
  /** The total number of tokens used by the account, including replays. */
  readonly usedTokens: number;
  /** Undefined if the plan does not have a limit. */
  readonly remainingTokens?: number;
}

/** A stream whose next event requires more tokens than the account has left. */
export interface Shortage {
  /** `ten_…:queue` */
  readonly queue: string;
  /** The number of tokens required for the next event. 0 if the account was not known. */
  readonly tokens: number;
  /** The time of the last request for this queue, in milliseconds. */
  readonly atMs: number;
}

/**
 * A waiting queue sends several requests within this time, so an older shortage has ended unless there are no tokens
 * left.
 */
const SHORTAGE_LASTS_MS = 90_000;

/** Returns true if a stream is waiting for more tokens than the account has left. */
export function isShort(balance: Balance, shortages: readonly Shortage[], nowMs: number): boolean {
  const left = balance.includedTokens - balance.usedTokens;
  return (
    balance.plan === 'Free' &&
    shortages.some(({ tokens, atMs }) => tokens > left && (left <= 0 || nowMs - atMs < SHORTAGE_LASTS_MS))
  );
}
