import type { RedisClient } from '../../redis/client.ts';
import type { GateChange } from '../gate/gate.ts';
import { HOUR_MS, type Part, partKeys } from '../keys.ts';
import { NO_REF, refOfId } from '../lanes/ref.ts';

/** The number of log entries that a command reads, and the maximum number of commands. */
const [PAGE, MOST_PAGES] = [100, 100];
/** The number of hours before and after now for which ids of senders are stored. */
const [HOURS_BEFORE, HOURS_AFTER] = [26, 2];

type Entry = readonly [id: string, fields: readonly string[]];

function routedIn([, fields]: Entry): string {
  return fields[fields.indexOf('r') + 1] ?? '';
}

/**
 * Returns the position up to which a log was routed: the ref of the newest event that was routed to anyone. Returns
 * undefined if this is the last event.
 */
async function lastRouted(redis: Pick<RedisClient, 'call'>, part: Part): Promise<string | undefined> {
  const { log, late } = partKeys(part);
  let before = '+';
  let oldest: string | undefined;
  for (let pages = 0; pages < MOST_PAGES; pages++) {
    const page = (await redis.call('xrevrange', log, before, '-', 'COUNT', PAGE)) as unknown as Entry[];
    if (page.length === 0) return oldest === undefined ? undefined : NO_REF;
    const refs = page.map(([id]) => refOfId(id));
    const later = (await redis.call('hmget', late, ...refs)) as (string | null)[];
    const at = page.findIndex((entry, i) => routedIn(entry) !== '' || later[i] !== null);
    if (at === 0 && oldest === undefined) return undefined;
    if (at >= 0) return refs[at];
    oldest = refs.at(-1);
    before = `(${page.at(-1)?.[0]}`;
  }
  return oldest;
}

/** Returns the hours for which ids of producers are stored in the part. */
async function hoursOfIds(redis: Pick<RedisClient, 'call'>, part: Part, nowMs: number): Promise<number[]> {
  const { ids } = partKeys(part);
  const hour = Math.floor(nowMs / HOUR_MS);
  const hours = Array.from({ length: HOURS_BEFORE + HOURS_AFTER + 1 }, (_, i) => hour - HOURS_BEFORE + i);
  const found = await Promise.all(hours.map(each => redis.call('exists', ids(each))));
  return hours.filter((_, i) => found[i] === 1);
}

/**
 * Returns the changes that are needed to restore the `meta` of a part. The progress is derived from the remaining keys,
 * so that accepted events are still routed and repeated ids are still detected. An event without receivers looks like
 * one that was not routed, so it is re-evaluated. The quota restarts at 0.
 */
export async function beginAgain(
  redis: Pick<RedisClient, 'call'>,
  part: Part,
  nowMs: number,
): Promise<readonly GateChange[]> {
  const changes: GateChange[] = [{ kind: 'begin' }];
  if ((await redis.call('exists', partKeys(part).log)) === 0) return changes;
  const routed = await lastRouted(redis, part);
  if (routed !== undefined) {
    changes.push(
      { kind: 'progress', field: 'hold', value: 'behind' },
      { kind: 'progress', field: 'pos', value: routed },
    );
  }
  const hours = await hoursOfIds(redis, part, nowMs);
  if (hours.length > 0) changes.push({ kind: 'progress', field: 'ids', value: `${hours[0]} ${hours.at(-1)}` });
  return changes;
}
