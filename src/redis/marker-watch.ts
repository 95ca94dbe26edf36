import type { RedisClient } from './client.ts';
import { checkMarker, RedisFormatError, RedisInstanceError } from './format.ts';
import { type KeysVersion, keysVersionOf } from './keys-version.ts';

/** Watches the owner and the format of the data in Redis. Both change when Redis is flushed, restored, or replaced. */
export interface MarkerWatch {
  /**
   * Returns true if we are allowed to use the data. After a reconnect, this is false until the data has been checked.
   * Does not apply to a Redis Cluster.
   */
  readonly isUsable: () => boolean;
  /** Returns the reason why the data must not be used. Undefined if this is not known yet. */
  readonly refusal: () => Error | undefined;
  /** Returns the error of the last check if the data could not be read. */
  readonly failure: () => Error | undefined;
  /**
   * Returns the error of the last check, if several checks in a row have failed without a response. Also happens if
   * Redis hangs, or in a Redis Cluster that is down, although the connections are open.
   */
  readonly silence: () => Error | undefined;
  /** Returns the version of the ingress keys when the data was last checked. Undefined if this is not known. */
  readonly keysVersion: () => KeysVersion | undefined;
  readonly stop: () => void;
}

/** Redis could be flushed and then used by a different version without closing any connections. */
export const CHECK_EVERY_MS = 5_000;
const CHECK_AGAIN_MS = 200;
/** A single check may also fail because of a short failover. */
const SILENT_AFTER_CHECKS = 2;

/**
 * Checks the marker after each reconnect, and at regular intervals. In a Redis Cluster, the other nodes remain usable
 * while the node with the marker is unavailable.
 *
 * @param client has been checked just now
 * @param onUsable called when the data may be used again after a reconnect or a refusal
 */
export function watchMarker(
  client: Pick<RedisClient, 'cluster' | 'readHash' | 'onReconnect'>,
  { instance, checkEveryMs, onUsable }: { instance: string; checkEveryMs: number; onUsable: () => void },
): MarkerWatch {
  let isUsable = true;
  let refusal: Error | undefined;
  let keysVersion: KeysVersion | undefined;
  let silence: { readonly error: Error; readonly checks: number } | undefined;
  let timer: NodeJS.Timeout | undefined;
  let connection = 0;

  async function check(of: number): Promise<void> {
    const requestedMs = performance.now();
    const found = await checkMarker(client, instance).catch((error: unknown) => error as Error);
    // There will be another check after a reconnect. After it has ended, there are no more checks.
    if (of !== connection) return;
    const error = found instanceof Error ? found : undefined;
    const wasUsable = isUsable;
    const isRefusal = error instanceof RedisFormatError || error instanceof RedisInstanceError;
    if (!(found instanceof Error)) {
      isUsable = true;
      refusal = undefined;
      keysVersion = keysVersionOf(found, requestedMs);
    } else if (isRefusal) {
      isUsable = false;
      refusal = error;
      keysVersion = undefined;
    }
    silence = error === undefined || isRefusal ? undefined : { error, checks: (silence?.checks ?? 0) + 1 };
    checkIn(isUsable ? checkEveryMs : Math.min(checkEveryMs, CHECK_AGAIN_MS));
    if (isUsable && !wasUsable) onUsable();
  }

  function checkIn(ms: number): void {
    const of = connection;
    timer = setTimeout(() => void check(of), ms).unref();
  }

  client.onReconnect(() => {
    clearTimeout(timer);
    if (!client.cluster) {
      isUsable = false;
      refusal = undefined;
    } else if (isUsable) {
      onUsable();
    }
    void check(++connection);
  });
  checkIn(checkEveryMs);
  return {
    isUsable: () => isUsable,
    refusal: () => refusal,
    failure: () => silence?.error,
    silence: () => (silence !== undefined && silence.checks >= SILENT_AFTER_CHECKS ? silence.error : undefined),
    keysVersion: () => keysVersion,
    stop: () => {
      connection++;
      clearTimeout(timer);
    },
  };
}
