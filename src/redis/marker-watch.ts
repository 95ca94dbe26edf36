import type { RedisClient } from './client.ts';
import { checkMarker, RedisFormatError, RedisInstanceError } from './format.ts';

/** Watches the owner and the format of the data in Redis. Both change if Redis is emptied, restored, or replaced. */
export interface MarkerWatch {
  /** Whether the data may be used. False from a reconnect on until it was checked, but not in a Redis Cluster. */
  readonly isUsable: () => boolean;
  /** Returns why the data must not be used. Undefined while unknown. */
  readonly refusal: () => Error | undefined;
  readonly stop: () => void;
}

/** Connections may stay open while Redis is emptied and written by another version. */
export const CHECK_EVERY_MS = 5_000;
const CHECK_AGAIN_MS = 200;

/**
 * Checks the marker at each reconnect, and regularly. In a Redis Cluster, the other nodes remain usable while the node
 * with the marker is unavailable.
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
  let timer: NodeJS.Timeout | undefined;
  let connection = 0;

  async function check(of: number): Promise<void> {
    const error = await checkMarker(client, instance).catch((error: unknown) => error as Error);
    // Another check runs after a reconnect, and none after the end.
    if (of !== connection) return;
    const wasUsable = isUsable;
    if (error === undefined) {
      isUsable = true;
      refusal = undefined;
    } else if (error instanceof RedisFormatError || error instanceof RedisInstanceError) {
      isUsable = false;
      refusal = error;
    }
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
    stop: () => {
      connection++;
      clearTimeout(timer);
    },
  };
}
