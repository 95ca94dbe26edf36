import type { RedisClient, Reply } from '../redis/client.ts';
import { HINT_PARTITIONS, type HintKind, hintKeys } from '../redis/keys.ts';

/** The content of an index. */
export interface IndexedWork {
  /** Members that have something to do, now or later. */
  readonly waiting: number;
  /** The number of members that are due but not being processed. */
  readonly due: number;
  /** The number of ms since the oldest due hint became due, or 0 if no hint is due. */
  readonly overdueMs: number;
}

/**
 * Reads an index of hints without changing it. Uses a single command (in a Cluster, there is one for each partition). A
 * member that is being processed is due at the end of its lease, so overdue members are not being processed.
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
