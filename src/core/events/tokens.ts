/** Number of bytes per token (specification part 8: one token per started 16 KB, which we read as 16 KiB). */
const TOKEN_BYTES = 16_384;

/** Returns how many tokens an event costs, given its body size in bytes. An empty body costs one token. */
export function tokensOf(bytes: number): number {
  return Math.ceil(Math.max(1, bytes) / TOKEN_BYTES);
}

/** Balance of an account, in tokens. */
export interface Balance {
  readonly plan: 'Free' | 'Metered';
  readonly includedTokens: number;
  /** Number of tokens used over the lifetime of the account, including replays. */
  readonly usedTokens: number;
  /** Undefined for a plan without a limit. */
  readonly remainingTokens?: number;
}

/** A stream whose next event costs more tokens than its account has left. */
export interface Shortage {
  /** `ten_…:queue` */
  readonly queue: string;
  /** Number of tokens needed for the next event, or 0 if the account was unknown. */
  readonly tokens: number;
  /** Time of the queue's last request, in milliseconds. */
  readonly atMs: number;
}

/** Waiting queues send several requests within this time, so an older shortage has ended unless no tokens are left. */
const SHORTAGE_LASTS_MS = 90_000;

/** Returns true if a stream is waiting for more tokens than the account has. */
export function isShort(balance: Balance, shortages: readonly Shortage[], nowMs: number): boolean {
  const left = balance.includedTokens - balance.usedTokens;
  return (
    balance.plan === 'Free' &&
    shortages.some(({ tokens, atMs }) => tokens > left && (left <= 0 || nowMs - atMs < SHORTAGE_LASTS_MS))
  );
}
