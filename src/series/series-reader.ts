import { type LateCounts, withLateCounts } from '../core/events/late-counts.ts';
import { RINGS, seriesOf, slotsOf, windowOf } from '../core/events/series.ts';
import type { TrafficReader } from '../plane/traffic-reader.ts';
import type { RedisClient } from '../redis/client.ts';
import { tenantKeys } from '../redis/keys.ts';
import { readNamedScript } from '../redis/named-scripts.ts';
import { COUNT_FIELDS, sourcesOf, weekOf } from './traffic-store.ts';

const TENANT_SERIES = readNamedScript(new URL('tenant-series.lua', import.meta.url));

/**
 * Reads a series. It is stored together with the data of the producer. The counts of parts that add them later are read
 * from these parts.
 *
 * @param metaOf returns the key of the hash of a part
 */
export function createSeriesReader(
  redis: RedisClient,
  metaOf: (part: { tenant: string; queue: string; number: number }) => string,
): Pick<TrafficReader, 'readSeries'> {
  async function readCounts(tenant: string, name: string): Promise<Omit<LateCounts & { source: string }, 'mark'>[]> {
    const [queue = '', number] = name.split(':');
    const part = { tenant, queue, number: Number(number) };
    const [arrived, ended] = (await redis.call('hmget', metaOf(part), ...COUNT_FIELDS)) as (string | null)[];
    const [a, o] = sourcesOf(part);
    return [
      { kind: 'a', source: a, text: arrived ?? '' },
      { kind: 'o', source: o, text: ended ?? '' },
    ];
  }

  return {
    async readSeries(tenant, history, nowMs) {
      const ring = RINGS[history];
      const window = windowOf(ring, nowMs);
      const { series, seriesLate, seriesMarks } = tenantKeys(tenant);
      const slots = slotsOf(ring, window);
      const names = (await redis.call('zrangebyscore', seriesLate, nowMs, '+inf')) as string[];
      // The parts come first: what they add in between is not counted twice.
      const late = (await Promise.all(names.map(name => readCounts(tenant, name)))).flat();
      const week = weekOf(nowMs);
      const call = {
        keys: { series },
        listed: [week + 1, week, week - 1].map(seriesMarks),
        args: { slots: slots.length },
        more: [...slots, ...late.map(({ source }) => source)],
      };
      const texts = (await redis.runNamed(TENANT_SERIES, call)) as (string | null)[];
      const marks = texts.slice(slots.length);
      return withLateCounts(
        history,
        seriesOf(ring, window, texts.slice(0, slots.length)),
        late.map((each, i) => ({ ...each, mark: marks[i] ?? undefined })),
      );
    },
  };
}
