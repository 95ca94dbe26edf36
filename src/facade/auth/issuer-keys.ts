import { isDeepStrictEqual } from 'node:util';
import type { KeySet } from './issuer-documents.ts';

/** KeyLimits specifies how long keys are used, and how often they are read. */
export interface KeyLimits {
  /** The age at which keys are refreshed, in milliseconds. This happens in the background unless it is late. */
  readonly refreshMs: number;
  /**
   * The age in milliseconds at which we stop using keys. Limits how long a withdrawn key is still trusted while the
   * issuer is unavailable.
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
 * How much later than `refreshMs` a request is late, in milliseconds. No token has arrived in the meantime, so the keys
 * may have been withdrawn long ago, and calls wait for the current ones.
 */
const LATE_MS = 60_000;

/** IssuerUnavailableError is thrown when the issuer's keys can't be read, which means that tokens can't be verified. */
export class IssuerUnavailableError extends Error {
  override readonly name = 'IssuerUnavailableError';
}

export interface IssuerKeys {
  /**
   * Returns the key set containing the key `kid`. Returns undefined if the issuer does not have this key.
   *
   * @throws IssuerUnavailableError
   */
  readonly find: (kid: string) => Promise<KeySet | undefined>;
  /**
   * Called if a signature is not valid with the keys in `tried`. The issuer may have another key with the same `kid`,
   * so its keys are read again, unless this was done within `cooldownMs`. Returns the key set containing the key `kid`
   * if it is different from `tried`, and undefined otherwise.
   */
  readonly findNewer: (kid: string, tried: KeySet) => Promise<KeySet | undefined>;
}

/**
 * Creates a cache for issuer keys. Unknown keys are requested immediately, so key rotations take effect without a
 * delay. If the issuer doesn't know the key either, any further unknown keys will be refused for `cooldownMs`, limiting
 * the number of requests that invalid keys can cause.
 *
 * @param options.read reads the keys. Must have a timeout
 * @param options.nowMs monotonic clock. If it went back, keys would not be read until it has caught up
 * @param options.onFailure called for each failed request
 */
export function createIssuerKeys(options: {
  read: () => Promise<KeySet>;
  limits: KeyLimits;
  nowMs: () => number;
  onFailure: (error: unknown) => void;
}): IssuerKeys {
  const { read, limits, nowMs, onFailure } = options;
  let held: { readonly set: KeySet; readonly readMs: number } | undefined;
  let reading: Promise<KeySet> | undefined;
  let failedMs = -Infinity;
  let missedMs = -Infinity;

  const isResting = () => nowMs() - failedMs < limits.retryMs;

  async function readNow(): Promise<KeySet> {
    try {
      const set = await read();
      // Tokens that were verified with the same keys don't have to be verified again.
      held = { set: isDeepStrictEqual(set, held?.set) && held ? held.set : set, readMs: nowMs() };
      return held.set;
    } catch (cause) {
      failedMs = nowMs();
      onFailure(cause);
      throw new IssuerUnavailableError('the keys of the issuer cannot be read', { cause });
    } finally {
      reading = undefined;
    }
  }

  /** Starts a request. The request is shared by all waiting callers. */
  function refresh(): Promise<KeySet> {
    reading ??= readNow();
    return reading;
  }

  /** Returns a set that was just read, if it contains the key. Otherwise, this is the start of the cool-down. */
  function withKey(set: KeySet, kid: string): KeySet | undefined {
    if (hasKey(set, kid)) return set;
    missedMs = nowMs();
    return undefined;
  }

  return {
    async find(kid) {
      const ageMs = held === undefined ? Infinity : nowMs() - held.readMs;
      if (held !== undefined && ageMs < limits.trustMs) {
        if (hasKey(held.set, kid)) {
          if (ageMs < limits.refreshMs || isResting()) return held.set;
          const known = held.set;
          const isLate = nowMs() - Math.max(held.readMs, failedMs) >= limits.refreshMs + LATE_MS;
          // Otherwise in the background. A failure was reported already, and the next call will retry.
          const current = refresh().catch(() => known);
          return isLate ? withKey(await current, kid) : known;
        }
        if (nowMs() - missedMs < limits.cooldownMs) return undefined;
      }
      if (reading === undefined && isResting()) {
        throw new IssuerUnavailableError('the keys of the issuer could not be read; next attempt soon');
      }
      return withKey(await refresh(), kid);
    },
    async findNewer(kid, tried) {
      if (held?.set === tried) {
        const isRecent = nowMs() - Math.max(held.readMs, missedMs) < limits.cooldownMs;
        if (reading === undefined && (isRecent || isResting())) return undefined;
        // If this fails, the signature is not valid as far as we know. Calls with an unknown key still wait or try again.
        const isRead = await refresh().then(
          () => true,
          () => false,
        );
        if (isRead) missedMs = nowMs();
      }
      return held !== undefined && held.set !== tried && hasKey(held.set, kid) ? held.set : undefined;
    },
  };
}

function hasKey({ keys }: KeySet, kid: string): boolean {
  return keys.some(key => key.kid === kid);
}
