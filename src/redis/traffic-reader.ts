import { type Bucket, type History, hoursOf, RINGS, seriesOf, slotsOf, windowOf } from '../core/events/series.ts';
import { NOT_ROUTED, type NotRoutedReason } from '../core/routing/reasons.ts';
import type { RedisClient } from './client.ts';
import { queueKeys, tenantKeys } from './keys.ts';

/** Reads what was counted for producers. Changes nothing. */
export interface TrafficReader {
  /** A producer's series, up to the bucket of now, without gaps; one command. */
  readonly readSeries: (tenant: string, history: History, nowMs: number) => Promise<readonly Bucket[]>;
  /**
   * How often integrations that subscribe to a queue did not get an event of it, by reason, in each of the UTC hours that
   * cover the history (2, 25 or 169); `missing_group_key` counts events. One command an hour.
   */
  readonly readReasons: (
    tenant: string,
    queue: string,
    history: History,
    nowMs: number,
  ) => Promise<readonly { readonly startMs: number; readonly reasons: Readonly<Record<NotRoutedReason, number>> }[]>;
}

const REASONS = Object.keys(NOT_ROUTED) as NotRoutedReason[];
const HOUR_MS = 3_600_000;

export function createTrafficReader(redis: RedisClient): TrafficReader {
  return {
    async readSeries(tenant, history, nowMs) {
      const ring = RINGS[history];
      const window = windowOf(ring, nowMs);
      const { series } = tenantKeys(tenant);
      const texts = (await redis.call('hmget', series, ...slotsOf(ring, window))) as (string | null)[];
      return seriesOf(ring, window, texts);
    },

    async readReasons(tenant, queue, history, nowMs) {
      const { traffic } = queueKeys(tenant, queue);
      return Promise.all(
        hoursOf(history, nowMs).map(async hour => {
          const fields = REASONS.map(reason => `r:${reason}`);
          const counts = (await redis.call('hmget', traffic(hour), ...fields)) as (string | null)[];
          const reasons = Object.fromEntries(REASONS.map((reason, i) => [reason, Number(counts[i] ?? 0)]));
          return { startMs: hour * HOUR_MS, reasons: reasons as Record<NotRoutedReason, number> };
        }),
      );
    },
  };
}
