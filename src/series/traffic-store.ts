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

/** Adds the counts of all parts (each of which has its own slot) to the series of their producers. */
export interface TrafficStore {
  /**
   * Adds new counts of the part to the series. Can be repeated by any process at any time. Each count is only added
   * once, and always to the minute in which it was counted.
   *
   * @param known result of the last call. Returns early without new counts
   * @returns the state of the series. You should pass it to the next call
   */
  readonly fold: (source: TrafficSource, nowMs: number, known?: string) => Promise<string>;
}

/** The fields in the hash of a part that contain its counts. */
const FIELDS = ['in', 'out'] as const;

/** `<begun>(;<minute> <a> <b> <c>)*` (`lib/traffic.lua`) without any past minutes. */
function pruned(text: string): string {
  const [head = '', ...minutes] = text.split(';');
  return minutes.length === 0 ? head : `${head};${minutes.at(-1)}`;
}

export function createTrafficStore(redis: RedisClient): TrafficStore {
  async function readCounts(meta: string): Promise<readonly string[]> {
    const texts = (await redis.call('hmget', meta, ...FIELDS)) as (string | null)[];
    return texts.map(text => text ?? '');
  }

  return {
    async fold(source, nowMs, known) {
      const { tenant, queue, number, meta, counts } = source;
      // The names used in the series.
      const names = [`a:${queue}:${number}`, `o:${queue}:${number}`];
      const texts = counts ?? (await readCounts(meta));
      const joined = texts.join('\n');
      if (joined === known || joined.trim() === '') return joined;
      const t = tenantKeys(tenant);
      const week = weekOf(nowMs);
      const args: Argument[] = [nowMs];
      const longer: Argument[] = [];
      for (const [i, text] of texts.entries()) {
        if (text === '') continue;
        args.push(names[i] as string, text);
        if (text !== pruned(text)) longer.push(FIELDS[i] as string, text);
      }
      const marks = [week, week - 1, week + 1].map(t.seriesMarks);
      await redis.run('fold-traffic', [t.series, ...marks], args);
      if (longer.length > 0) await redis.run('prune-traffic', [meta], longer);
      return texts.map(pruned).join('\n');
    },
  };
}
