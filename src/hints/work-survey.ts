import type { RedisClient, Reply } from '../redis/client.ts';
import { HINT_PARTITIONS, type HintKind, hintKeys } from '../redis/keys.ts';

/** What one index holds. */
export interface IndexedWork {
  /** Members that have something to do, now or later. */
  readonly waiting: number;
  /** Of them, those that are due and that nobody has taken up. */
  readonly due: number;
  /** For how long the one that is due for longest has waited, ms; 0 when none is due. */
  readonly overdueMs: number;
}

/**
 * Looks at a hint index without changing it: one command, one a partition in a Cluster, however much there is to do. A
 * member that somebody works on is due when its lease ends, so what is overdue has found nobody.
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
