import type { RedisClient } from '../../../src/redis/client.ts';

export type StreamEntry = readonly [id: string, fields: readonly string[]];

/** The content of a Redis by key, without data that is not compared: bodies, hourly counters, ids, and reasons. */
export interface RedisDump {
  readonly hashes: ReadonlyMap<string, Readonly<Record<string, string>>>;
  readonly sets: ReadonlyMap<string, readonly string[]>;
  /** The score by member. */
  readonly sorted: ReadonlyMap<string, Readonly<Record<string, string>>>;
  readonly streams: ReadonlyMap<string, readonly StreamEntry[]>;
}

// This is a single round trip for any content. It cannot be used with a Cluster because the keys are not declared.
const DUMP = `
local out = {}
local function compared(key)
  local name = string.match(key, '}:(.*)$') or key
  if ARGV[1] and string.sub(key, 1, #ARGV[1]) == ARGV[1] and name ~= 'meta' then return false end
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

/** This has no prototype because a field may have any name. */
function recordOf(flat: readonly string[]): Record<string, string> {
  const record: Record<string, string> = Object.create(null);
  for (let at = 0; at < flat.length; at += 2) record[flat[at] as string] = flat[at + 1] as string;
  return record;
}

/** @param except prefixes of keys to exclude, except for `meta` */
export async function dumpRedis(redis: RedisClient, except?: string): Promise<RedisDump> {
  const args = except === undefined ? [] : [except];
  const [rows] = (await redis.callAll('EVAL', DUMP, 0, ...args)) as unknown as [[string, string, unknown][]];
  const dump = { hashes: new Map(), sets: new Map(), sorted: new Map(), streams: new Map() };
  for (const [kind, key, value] of rows) {
    if (kind === 'hash') dump.hashes.set(key, recordOf(value as string[]));
    else if (kind === 'set') dump.sets.set(key, (value as string[]).toSorted());
    else if (kind === 'zset') dump.sorted.set(key, recordOf(value as string[]));
    else dump.streams.set(key, value);
  }
  return dump;
}
