import type { KeySet } from './issuer-documents.ts';

/** How long keys are used, and how often they are read. */
export interface KeyLimits {
  /** Age from which keys are read again while still in use, ms. */
  readonly refreshMs: number;
  /** Age from which keys are no longer used, ms. It bounds the trust in a withdrawn key. */
  readonly trustMs: number;
  /** Cool-down after an unknown key, ms: unknown keys are refused without a request. */
  readonly cooldownMs: number;
  /** Cool-down after a failure, ms: no requests. */
  readonly retryMs: number;
}

/** The keys of the issuer cannot be read, so a token cannot be judged. */
export class IssuerUnavailableError extends Error {
  override readonly name = 'IssuerUnavailableError';
}

export interface IssuerKeys {
  /**
   * Returns the key set that contains the key `kid`; undefined if the issuer has no such key.
   *
   * @throws IssuerUnavailableError
   */
  readonly find: (kid: string) => Promise<KeySet | undefined>;
}

/**
 * Caches the keys of one issuer. An unknown key is requested at once, so a rotation takes effect without a wait. If
 * the issuer does not know it either, the cool-down begins: invented keys cost the issuer one request each time.
 *
 * @param options.read reads the keys, with its own deadline
 * @param options.nowMs wall clock
 * @param options.onFailure is called for each failed read
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

  /** Shares one request among all waiting callers. */
  function refresh(): Promise<KeySet> {
    reading ??= readNow();
    return reading;
  }

  return {
    async find(kid) {
      const ageMs = held === undefined ? Infinity : nowMs() - held.readMs;
      if (held !== undefined && ageMs < limits.trustMs) {
        if (hasKey(held.set, kid)) {
          // Runs in the background. A failure was reported already, and the next request tries again.
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
