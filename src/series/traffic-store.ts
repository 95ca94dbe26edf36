import type { Argument, RedisClient } from '../redis/client.ts';
import { tenantKeys } from '../redis/keys.ts';

const WEEK_MS = 7 * 86_400_000;

/** The marks of the series, which are stored in the hash of a week (`seriesMarks`). */
export function weekOf(nowMs: number): number {
  return Math.floor(nowMs / WEEK_MS);
}

/** The part whose counts are folded. `meta` is the hash of this part. */
export interface TrafficSource {
  readonly tenant: string;
  readonly queue: string;
  readonly number: number;
  readonly meta: string;
  /** The counts that were read from the hash. If they are missing, they will be read. */
  readonly counts?: readonly [arrived: string, ended: string];
}

/** The result of a fold. */
export interface Folded {
  /** The state of the series. You should pass it to the next call. */
  readonly known: string;
  /** The next call may take until `lateMs`. */
  readonly mayBeLate: boolean;
}

/** Adds the counts of all parts (each of which has its own slot) to the series of their producers. */
export interface TrafficStore {
  /**
   * Adds new counts of the part to the series. Can be repeated by any process at any time. Each count is only added
   * once, and always to the minute in which it was counted.
   *
   * @param known from the last call. Returns early without new counts
   * @param lateMs the time until which the next call may take. This is only possible for a limited number of parts in
   *   each workspace. Until then, the series is read together with these parts (`series-reader.ts`)
   */
  readonly fold: (source: TrafficSource, nowMs: number, known?: string, lateMs?: number) => Promise<Folded>;
}

/** The number of minutes that a part which is being used may keep after they have been added. */
const KEPT_MINUTES = 4;

/** The fields in the hash of a part that contain its counts. */
export const COUNT_FIELDS = ['in', 'out'] as const;

/** The names of the counts of a part in the series. */
export const sourcesOf = ({ queue, number }: { queue: string; number: number }) =>
  [`a:${queue}:${number}`, `o:${queue}:${number}`] as const;

/** `<begun>(;<minute> <a> <b> <c>)*` (`lib/traffic.lua`) without any past minutes. */
function pruned(text: string): string {
  const [head = '', ...minutes] = text.split(';');
  return minutes.length === 0 ? head : `${head};${minutes.at(-1)}`;
}

const minutesOf = (text: string) => text.split(';').length - 1;

export function createTrafficStore(redis: RedisClient): TrafficStore {
  async function readCounts(meta: string): Promise<readonly string[]> {
    const texts = (await redis.call('hmget', meta, ...COUNT_FIELDS)) as (string | null)[];
    return texts.map(text => text ?? '');
  }

  return {
    async fold(source, nowMs, known, lateMs) {
      const { tenant, queue, number, meta, counts } = source;
      const names = sourcesOf({ queue, number });
      const texts = counts ?? (await readCounts(meta));
      const folded = texts.map(pruned).join('\n');
      if (folded === known || folded.trim() === '') return { known: folded, mayBeLate: false };
      const t = tenantKeys(tenant);
      const week = weekOf(nowMs);
      const args: Argument[] = [nowMs, `${queue}:${number}`, lateMs ?? ''];
      for (const [i, text] of texts.entries()) if (text !== '') args.push(names[i] as string, text);
      const marks = [week, week - 1, week + 1].map(t.seriesMarks);
      const mayBeLate = (await redis.run('fold-traffic', [t.series, ...marks, t.seriesLate], args)) === 1;
      const most = mayBeLate ? KEPT_MINUTES : 1;
      const longer = texts.flatMap((text, i) => (minutesOf(text) > most ? [COUNT_FIELDS[i] as string, text] : []));
      if (longer.length > 0) await redis.run('prune-traffic', [meta], longer);
      return { known: folded, mayBeLate };
    },
  };
}
