import type { RedisClient, Reply } from './client.ts';
import { parseInboxMember } from './inbox-store.ts';
import { HINT_PARTITIONS, type HintKind, hintKeys, inboxKeys } from './keys.ts';

/** What one hint index holds. */
export interface IndexedWork {
  /** Members that have something to do, now or later. */
  readonly waiting: number;
  /** Of them, those that are due and that nobody has taken up. */
  readonly due: number;
  /** For how long the one that is due for longest has waited, ms; 0 when none is due. */
  readonly overdueMs: number;
}

/** Subscriptions of each partition whose inboxes are counted: exact up to there, an estimate beyond. */
const COUNTED = 4;

type Partition = IndexedWork & { readonly named: readonly string[] };

/**
 * Looks at a hint index without changing it: one command, one a partition in a Cluster, however much there is to do. A
 * member that somebody works on is due when its lease ends, so what is overdue has found nobody.
 */
export async function surveyWork(
  redis: Pick<RedisClient, 'run' | 'cluster'>,
  kind: HintKind,
  nowMs: number,
): Promise<IndexedWork> {
  return sum(await readPartitions(redis, kind, nowMs, 0));
}

/**
 * The open deliveries of all subscriptions that wait for a dispatcher: counted in up to four of each of the 16 partitions
 * of their index, at most 64 commands, and taken for the average where a partition has more.
 */
export async function estimateOpenDeliveries(
  redis: Pick<RedisClient, 'run' | 'call' | 'cluster'>,
  nowMs: number,
): Promise<number> {
  const partitions = await readPartitions(redis, 'd', nowMs, COUNTED);
  const estimates = await Promise.all(
    partitions.map(async ({ waiting, named }) => {
      const counts = await Promise.all(named.map(member => countOpen(redis, member)));
      const counted = counts.reduce((total, count) => total + count, 0);
      return named.length === 0 ? 0 : (counted * waiting) / named.length;
    }),
  );
  return Math.round(estimates.reduce((total, estimate) => total + estimate, 0));
}

async function countOpen(redis: Pick<RedisClient, 'call'>, member: string): Promise<number> {
  const { integration, sub, inc } = parseInboxMember(member);
  return (await redis.call('zcard', inboxKeys(integration, sub, inc).pending)) as number;
}

async function readPartitions(
  redis: Pick<RedisClient, 'run' | 'cluster'>,
  kind: HintKind,
  nowMs: number,
  named: number,
): Promise<Partition[]> {
  const keys = Array.from({ length: HINT_PARTITIONS }, (_, partition) => hintKeys(kind, partition).due);
  const calls = redis.cluster ? keys.map(key => [key]) : [keys];
  const replies = await Promise.all(calls.map(some => redis.run('hinted', some, [nowMs, named])));
  const flat = (replies as Reply[][]).flat();
  return keys.map((_key, i) => {
    const [waiting, due, soonest, members] = flat.slice(4 * i) as [number, number, string, string[]];
    const overdueMs = due === 0 ? 0 : Math.max(0, nowMs - Number(soonest));
    return { waiting, due, overdueMs, named: members };
  });
}

function sum(partitions: readonly Partition[]): IndexedWork {
  return partitions.reduce<IndexedWork>(
    (all, { waiting, due, overdueMs }) => ({
      waiting: all.waiting + waiting,
      due: all.due + due,
      overdueMs: Math.max(all.overdueMs, overdueMs),
    }),
    { waiting: 0, due: 0, overdueMs: 0 },
  );
}
