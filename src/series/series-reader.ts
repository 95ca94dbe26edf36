import { RINGS, seriesOf, slotsOf, windowOf } from '../core/events/series.ts';
import type { TrafficReader } from '../plane/traffic-reader.ts';
import type { RedisClient } from '../redis/client.ts';
import { tenantKeys } from '../redis/keys.ts';

/** Reads a series. The series is stored together with the data of the producer. */
export function createSeriesReader(redis: RedisClient): Pick<TrafficReader, 'readSeries'> {
  return {
    async readSeries(tenant, history, nowMs) {
      const ring = RINGS[history];
      const window = windowOf(ring, nowMs);
      const { series } = tenantKeys(tenant);
      const texts = (await redis.call('hmget', series, ...slotsOf(ring, window))) as (string | null)[];
      return seriesOf(ring, window, texts);
    },
  };
}
