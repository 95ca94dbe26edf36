import { hoursOf } from '../../core/events/series.ts';
import { COUNTED, type CountedReason } from '../../core/routing/reasons.ts';
import type { TrafficReader } from '../../plane/traffic-reader.ts';
import type { RedisClient } from '../../redis/client.ts';
import { readNamedScript } from '../../redis/named-scripts.ts';
import { createSeriesReader } from '../../series/series-reader.ts';
import { callScript } from '../call.ts';
import { readPart } from '../inbox/find-part.ts';
import { HOUR_MS, partKeys } from '../keys.ts';

const READ_REASONS = readNamedScript(new URL('read-reasons.lua', import.meta.url));

type Counts = Record<CountedReason, number>;

const NOTHING = Object.fromEntries(COUNTED.map(reason => [reason, 0])) as Counts;

/** Adds the counts to `reasons`, in the order of `COUNTED`. */
function addCounts(reasons: Counts, counts: readonly string[]): void {
  for (const [i, reason] of COUNTED.entries()) reasons[reason] += Number(counts[i] ?? 0);
}

export function createPartTrafficReader(redis: RedisClient): TrafficReader {
  return {
    readSeries: createSeriesReader(redis).readSeries,

    async readReasons(tenant, queue, history, nowMs) {
      const hours = hoursOf(history, nowMs);
      const part = await readPart(redis, tenant, queue);
      const call = part && { keys: partKeys(part), args: { gen: part.gen }, more: hours };
      const answer = call === undefined ? ['GONE'] : await callScript(redis, READ_REASONS, call);
      const [word, newest = '', ...older] = answer as readonly string[];
      const [newestHour, ...newestCounts] = newest.split(' ');
      return hours.map((hour, i) => {
        const reasons = { ...NOTHING };
        if (word === 'OK') {
          addCounts(reasons, (older[i] ?? '').split(' '));
          if (newestHour === String(hour)) addCounts(reasons, newestCounts);
        }
        return { startMs: hour * HOUR_MS, reasons };
      });
    },
  };
}
