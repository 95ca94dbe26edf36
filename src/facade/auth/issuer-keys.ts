import { isDeepStrictEqual } from 'node:util';
import type { KeySet } from './issuer-documents.ts';

/** KeyLimits specifies the time for which keys are used, and the interval at which they are read. */
export interface KeyLimits {
  /** The age at which keys are refreshed, in milliseconds. The refresh happens in the background unless it is late. */
  readonly refreshMs: number;
  /**
   * The age in milliseconds at which we stop using keys. Limits the time for which a withdrawn key is still trusted
   * while the issuer is unavailable.
   */
  readonly trustMs: number;
  /**
   * The delay in milliseconds after requesting an unknown key. In the meantime, unknown keys and signatures that are
   * not valid are rejected without sending a request.
   */
  readonly cooldownMs: number;
  /** The delay after a failed request, in milliseconds. No requests are sent during this time. */
  readonly retryMs: number;
}

/**
 * The time after `refreshMs` from which a request is considered late, in milliseconds. Calls wait for the current keys.
 * Since no token has arrived in the meantime, the old keys may have been withdrawn long ago.
 */
const LATE_MS = 60_000;

/** IssuerUnavailableError is thrown when the issuer's keys can't be read, so tokens can't be verified. */
export class IssuerUnavailableError extends Error {
  override readonly name = 'IssuerUnavailableError';
}

export interface IssuerKeys {
  /**
   * Returns the key set containing the `kid` key. Returns undefined if the issuer does not have this key.
   *
   * @throws IssuerUnavailableError
   */
  readonly find: (kid: string) => Promise<KeySet | undefined>;
  /**
   * Called if a signature is not valid with the keys in `tried`. The issuer may have another key with the same `kid`,
   * so its keys are read again, unless this was done within `cooldownMs`. Returns the key set containing the `kid` key
   * if it is different from `tried`, and undefined otherwise.
   */
  readonly findNewer: (kid: string, tried: KeySet) => Promise<KeySet | undefined>;
  /**
   * Returns why no token can be verified: `unread` before the first request has ended, and otherwise the error of the
   * last request. Undefined if there are keys, or if the last request was successful.
   */
  readonly outage: () => unknown;
  /** Reads the keys if there is an outage. Never rejects. */
  readonly retry: () => Promise<void>;
}

interface ReadingOptions {
  /** Reads the keys. Must have a timeout. */
  readonly read: () => Promise<KeySet>;
  readonly limits: KeyLimits;
  /** Monotonic clock. If it went back, keys would not be read until it has caught up. */
  readonly nowMs: () => number;
  /** Called for each failed request. */
  readonly onFailure: (error: unknown) => void;
}

/** Reads keys, and remembers the last key set and the last failure. */
function createReadings({ read, limits, nowMs, onFailure }: ReadingOptions) {
  let held: { readonly set: KeySet; readonly readMs: number } | undefined;
  let reading: Promise<KeySet> | undefined;
  let failedMs = -Infinity;
  let outage: unknown = 'unread';

  async function readNow(): Promise<KeySet> {
    try {
      const set = await read();
      // Tokens that were verified with the same keys don't have to be verified again.
      held = { set: isDeepStrictEqual(set, held?.set) && held ? held.set : set, readMs: nowMs() };
      outage = undefined;
      return held.set;
    } catch (cause) {
      failedMs = nowMs();
      outage = cause;
      onFailure(cause);
      throw new IssuerUnavailableError('the keys of the issuer cannot be read', { cause });
    } finally {
      reading = undefined;
    }
  }

  return {
    held: () => held,
    failedMs: () => failedMs,
    isReading: () => reading !== undefined,
    /** Returns true if the last request has just failed. */
    isResting: () => nowMs() - failedMs < limits.retryMs,
    /** Starts a request. The request is shared by all waiting callers. */
    refresh: (): Promise<KeySet> => {
      reading ??= readNow();
      return reading;
    },
    outage: () => (held !== undefined && nowMs() - held.readMs < limits.trustMs ? undefined : outage),
  };
}

/**
 * Creates a cache for issuer keys. Unknown keys are requested immediately, so key rotations take effect without a
 * delay. If the issuer doesn't know the key either, any further unknown keys will be refused for `cooldownMs`, limiting
 * the number of requests that invalid keys can cause.
 */
export function createIssuerKeys(options: ReadingOptions): IssuerKeys {
  const { limits, nowMs } = options;
  const { held: lastRead, failedMs, isReading, isResting, refresh, outage } = createReadings(options);
  let missedMs = -Infinity;

  /** Returns a set that was just read, if it contains the key. If it does not, the cool-down starts now. */
  function withKey(set: KeySet, kid: string): KeySet | undefined {
    if (hasKey(set, kid)) return set;
    missedMs = nowMs();
    return undefined;
  }

  return {
    async find(kid) {
      const held = lastRead();
      const ageMs = held === undefined ? Infinity : nowMs() - held.readMs;
      if (held !== undefined && ageMs < limits.trustMs) {
        if (hasKey(held.set, kid)) {
          if (ageMs < limits.refreshMs || isResting()) return held.set;
          const isLate = nowMs() - Math.max(held.readMs, failedMs()) >= limits.refreshMs + LATE_MS;
          // Refresh the keys. The call only waits for the result if the current keys are too old. A failure was
          // reported already, and the next call will retry.
          const current = refresh().catch(() => held.set);
          return isLate ? withKey(await current, kid) : held.set;
        }
        if (nowMs() - missedMs < limits.cooldownMs) return undefined;
      }
      if (!isReading() && isResting()) {
        throw new IssuerUnavailableError('the keys of the issuer could not be read; next attempt soon');
      }
      return withKey(await refresh(), kid);
    },
    async findNewer(kid, tried) {
      const held = lastRead();
      if (held?.set === tried) {
        const isRecent = nowMs() - Math.max(held.readMs, missedMs) < limits.cooldownMs;
        if (!isReading() && (isRecent || isResting())) return undefined;
        // If this fails, the signature is not valid as far as we know. Calls with an unknown key still wait or try
        // again.
        const isRead = await refresh().then(
          () => true,
          () => false,
        );
        if (isRead) missedMs = nowMs();
      }
      const set = lastRead()?.set;
      return set !== undefined && set !== tried && hasKey(set, kid) ? set : undefined;
    },
    outage,
    async retry() {
      if (outage() !== undefined) await refresh().catch(() => {});
    },
  };
}

function hasKey({ keys }: KeySet, kid: string): boolean {
  return keys.some(key => key.kid === kid);
}
