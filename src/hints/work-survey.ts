import type { RedisClient, Reply } from '../redis/client.ts';
import { HINT_PARTITIONS, type HintKind, hintKeys } from '../redis/keys.ts';

/** What one index holds. */
export interface IndexedWork {
  /** Members that have something to do, now or later. */
  readonly waiting: number;
  /** Number of these that are due and not being processed. */
  readonly due: number;
  /** Time in ms since the oldest due hint became due. 0 if none is due. */
  readonly overdueMs: number;
}

/**
 * Reads a hint index without changing it, using one command (in a Cluster, one per partition). A member being processed
 * is due at the end of its lease, so overdue members are not being processed.
 */
export async function surveyWork(
  redis: Pick<RedisClient, 'run' | 'cluster'>,
  kind: HintKind,
  nowMs: number,
): Promise<IndexedWork> {
  const keys = Array.from({ length: HINT_PARTITIONS }, (_, partition) => hintKeys(kind, partition).due);
  const calls = redis.cluster ? keys.map(key => [key]) : [keys];
  const replies = await Promise.all(calls.map(some => redis.run('hinted', some, [nowMs])));
  const flat = (replies as Reply[][]).flat();
  const all = { waiting: 0, due: 0, overdueMs: 0 };
  for (const i of keys.keys()) {
    const [waiting, due, soonest] = flat.slice(3 * i) as [number, number, string];
    all.waiting += waiting;
    all.due += due;
    if (due > 0) all.overdueMs = Math.max(all.overdueMs, nowMs - Number(soonest));
  }
  return all;
}
