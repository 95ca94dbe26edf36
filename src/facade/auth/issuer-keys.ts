import type { KeySet } from './issuer-documents.ts';

/** KeyLimits defines how long keys are used and how often they are read. */
export interface KeyLimits {
  /** The age in milliseconds after which keys are refreshed in the background. */
  readonly refreshMs: number;
  /** The age in milliseconds after which keys are no longer used. This limits how long a withdrawn key is trusted. */
  readonly trustMs: number;
  /**
   * The delay in milliseconds after a request for an unknown key. During this time, we refuse unknown keys without
   * making a request.
   */
  readonly cooldownMs: number;
  /** The delay in milliseconds after a failed request. We don't make any requests during this time. */
  readonly retryMs: number;
}

/** IssuerUnavailableError is thrown if the keys of the issuer cannot be read, so that a token cannot be verified. */
export class IssuerUnavailableError extends Error {
  override readonly name = 'IssuerUnavailableError';
}

export interface IssuerKeys {
  /**
   * Returns the key set that contains the key `kid`, or undefined if the issuer does not have the key.
   *
   * @throws IssuerUnavailableError
   */
  readonly find: (kid: string) => Promise<KeySet | undefined>;
}

/**
 * Creates a cache for the keys of an issuer. If a key is unknown, the keys are requested immediately so that a key
 * rotation takes effect without a delay. If the issuer does not have the key either, further unknown keys are refused
 * for `cooldownMs`. This limits the requests that are caused by invalid keys.
 *
 * @param options.read reads the keys and must have a timeout
 * @param options.nowMs returns the wall clock
 * @param options.onFailure is called for each failed request
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
      held = { set, readMs: nowMs() };
      return set;
    } catch (cause) {
      failedMs = nowMs();
      onFailure(cause);
      throw new IssuerUnavailableError('the keys of the issuer cannot be read', { cause });
    } finally {
      reading = undefined;
    }
  }

  /** Starts a request that is shared by all waiting callers. */
  function refresh(): Promise<KeySet> {
    reading ??= readNow();
    return reading;
  }

  return {
    async find(kid) {
      const ageMs = held === undefined ? Infinity : nowMs() - held.readMs;
      if (held !== undefined && ageMs < limits.trustMs) {
        if (hasKey(held.set, kid)) {
          // This runs in the background. The failure was already reported and the next call will retry the request.
          if (ageMs >= limits.refreshMs && !isResting()) refresh().catch(() => {});
          return held.set;
        }
        if (nowMs() - missedMs < limits.cooldownMs) return undefined;
      }
      if (reading === undefined && isResting()) {
        throw new IssuerUnavailableError('the keys of the issuer could not be read; next attempt soon');
      }
      const set = await refresh();
      if (hasKey(set, kid)) return set;
      missedMs = nowMs();
      return undefined;
    },
  };
}

function hasKey({ keys }: KeySet, kid: string): boolean {
  return keys.some(key => key.kid === kid);
}
