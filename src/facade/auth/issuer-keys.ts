import type { KeySet } from './issuer-documents.ts';

/** How long keys are used, and how often they are asked for. */
export interface KeyLimits {
  /** From this age on they are read again, while they are still used. */
  readonly refreshMs: number;
  /** From this age on they are not used any more: a key that its issuer has withdrawn is not trusted for longer. */
  readonly trustMs: number;
  /** After a key that the issuer did not have: unknown ones are refused without asking. */
  readonly cooldownMs: number;
  /** After a failure: nothing is asked. */
  readonly retryMs: number;
}

/** The issuer cannot be asked for its keys: whether a token is good cannot be told. */
export class IssuerUnavailableError extends Error {
  override readonly name = 'IssuerUnavailableError';
}

export interface IssuerKeys {
  /**
   * The key set that has the key `kid`; undefined when the issuer has no such key.
   *
   * @throws IssuerUnavailableError
   */
  readonly find: (kid: string) => Promise<KeySet | undefined>;
}

/**
 * Remembers the keys of one issuer. A key that is not known is asked for at once, so that a rotation needs no waiting;
 * only one that the issuer did not have either begins the cool-down, so that invented ones cost it one request each time.
 *
 * @param options.read reads the keys, within a deadline of its own
 * @param options.nowMs wall clock
 * @param options.onFailure hears of each time that they could not be read
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

  /** One request for all who wait. */
  function refresh(): Promise<KeySet> {
    reading ??= readNow();
    return reading;
  }

  return {
    async find(kid) {
      const ageMs = held === undefined ? Infinity : nowMs() - held.readMs;
      if (held !== undefined && ageMs < limits.trustMs) {
        if (hasKey(held.set, kid)) {
          // In the background; a failure was reported, and the next request tries again.
          if (ageMs >= limits.refreshMs && !isResting()) refresh().catch(() => {});
          return held.set;
        }
        if (nowMs() - missedMs < limits.cooldownMs) return undefined;
      }
      if (reading === undefined && isResting()) {
        throw new IssuerUnavailableError('the keys of the issuer could not be read a moment ago');
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
