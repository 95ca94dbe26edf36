import { hoursOf } from '../../core/events/series.ts';
import { NOT_ROUTED, type NotRoutedReason } from '../../core/routing/reasons.ts';
import type { RedisClient } from '../../redis/client.ts';
import { readNamedScript } from '../../redis/named-scripts.ts';
import { createTrafficReader, type TrafficReader } from '../../redis/traffic-reader.ts';
import { callScript } from '../call.ts';
import { readPart } from '../inbox/find-part.ts';
import { HOUR_MS, partKeys } from '../keys.ts';

const READ_REASONS = readNamedScript(new URL('read-reasons.lua', import.meta.url));

/** Reasons that a part counts, in the order of its texts (`reasons.lua`). The others cannot occur there. */
const COUNTED = ['missing_group_key', 'not_activated', 'skipped_to_now', 'expired'] as const;
const NOTHING = Object.fromEntries(Object.keys(NOT_ROUTED).map(reason => [reason, 0])) as Record<
  NotRoutedReason,
  number
>;

/** Adds counts to `reasons`. */
function addCounts(reasons: Record<NotRoutedReason, number>, counts: readonly string[]): void {
  for (const [i, reason] of COUNTED.entries()) reasons[reason] += Number(counts[i] ?? 0);
}

/** As `createTrafficReader`, of parts. The series is the same; it takes two commands to read the reasons. */
export function createPartTrafficReader(redis: RedisClient): TrafficReader {
  return {
    readSeries: createTrafficReader(redis).readSeries,

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
