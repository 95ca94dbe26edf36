import type { RedisClient } from '../../../src/redis/client.ts';

export type StreamEntry = readonly [id: string, fields: readonly string[]];

/** What lies in a Redis, by key; what nobody compares is left out: bodies, counters of hours, ids, reasons. */
export interface RedisDump {
  readonly hashes: ReadonlyMap<string, Readonly<Record<string, string>>>;
  readonly sets: ReadonlyMap<string, readonly string[]>;
  /** member → score */
  readonly sorted: ReadonlyMap<string, Readonly<Record<string, string>>>;
  readonly streams: ReadonlyMap<string, readonly StreamEntry[]>;
}

// One round trip whatever lies there. Not for a Cluster: the keys are not declared.
const DUMP = `
local out = {}
local function compared(key)
  local name = string.match(key, '}:(.*)$') or key
  return not (string.find(name, '^b:') or string.find(name, '^id:') or string.find(name, '^traf:') or
    string.find(name, '^why:'))
end
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = compared(key) and redis.call('TYPE', key).ok
  local value
  if kind == 'hash' then value = redis.call('HGETALL', key)
  elseif kind == 'set' then value = redis.call('SMEMBERS', key)
  elseif kind == 'zset' then value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  elseif kind == 'stream' then value = redis.call('XRANGE', key, '-', '+')
  end
  if value then out[#out + 1] = { kind, key, value } end
end
return out`;

/** Without a prototype: a field may have any name. */
function recordOf(flat: readonly string[]): Record<string, string> {
  const record: Record<string, string> = Object.create(null);
  for (let at = 0; at < flat.length; at += 2) record[flat[at] as string] = flat[at + 1] as string;
  return record;
}

export async function dumpRedis(redis: RedisClient): Promise<RedisDump> {
  const [rows] = (await redis.callAll('EVAL', DUMP, 0)) as unknown as [[string, string, unknown][]];
  const dump = { hashes: new Map(), sets: new Map(), sorted: new Map(), streams: new Map() };
  for (const [kind, key, value] of rows) {
    if (kind === 'hash') dump.hashes.set(key, recordOf(value as string[]));
    else if (kind === 'set') dump.sets.set(key, (value as string[]).toSorted());
    else if (kind === 'zset') dump.sorted.set(key, recordOf(value as string[]));
    else dump.streams.set(key, value);
  }
  return dump;
}

/**
 * Keys that a Redis has changed since its start: the same before and after means that nothing was written. What lies
 * there is compared beside it only to find what.
 */
export async function changesOf(redis: RedisClient): Promise<number> {
  const [info] = (await redis.callAll('INFO', 'persistence')) as [string];
  return Number(/rdb_changes_since_last_save:(\d+)/.exec(info)?.[1]);
}

/** Keys whose content differs between two dumps. */
export function changedKeys(before: RedisDump, after: RedisDump): string[] {
  const changed: string[] = [];
  for (const kind of ['hashes', 'sets', 'sorted', 'streams'] as const) {
    for (const key of new Set([...before[kind].keys(), ...after[kind].keys()])) {
      if (JSON.stringify(before[kind].get(key)) !== JSON.stringify(after[kind].get(key))) changed.push(key);
    }
  }
  return changed;
}

const DROP = `
local keys = redis.call('KEYS', ARGV[1] .. '*')
for _, key in ipairs(keys) do redis.call('DEL', key) end
return #keys`;

/** Removes everything of one slot, by its hash tag. */
export async function dropSlot(redis: RedisClient, tag: string): Promise<void> {
  await redis.callAll('EVAL', DROP, 0, tag);
}
