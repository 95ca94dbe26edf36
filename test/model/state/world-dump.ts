import { PART_NUMBER, type Part, partKeys } from '../../../src/part/keys.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { type Dump, dumpPart } from '../../part/random/dump.ts';
import { dumpRedis, type RedisDump } from './redis-dump.ts';

/** The content of a Redis: hashes and sorted sets outside of parts by key, and everything in the parts. */
export interface WorldDump extends Pick<RedisDump, 'hashes' | 'sorted'> {
  /** The part of the current generation, by `ten_…:stream`. Undefined if there is none. */
  readonly parts: ReadonlyMap<string, PartDump>;
}

export interface PartDump extends Dump {
  readonly part: Part;
}

/** @param sinceMs when the first event may have been accepted */
export async function dumpWorld(redis: RedisClient, sinceMs: number, nowMs: number): Promise<WorldDump> {
  const { hashes, sorted } = await dumpRedis(redis, '{q:');
  const found: Part[] = [];
  for (const [key, { gen }] of hashes) {
    const [, tenant, queue] = /^\{q:([^:]+):([^:]+):\d+\}:meta$/.exec(key) ?? [];
    if (tenant === undefined || queue === undefined || gen === undefined || gen === '-') continue;
    found.push({ tenant, queue, gen, number: PART_NUMBER });
  }
  // Redis lists keys in an arbitrary order that changes after each start, while dispatchers process parts in this
  // order.
  found.sort((a, b) => (partTag(a.tenant, a.queue) < partTag(b.tenant, b.queue) ? -1 : 1));
  const dumps = await Promise.all(found.map(part => dumpPart(redis, part, sinceMs, nowMs)));
  const parts = new Map(found.map((part, i) => [`${part.tenant}:${part.queue}`, { ...(dumps[i] as Dump), part }]));
  return { hashes, sorted, parts };
}

/** A claim, as stored in a part. */
export interface HeldClaim {
  readonly slot: string;
  readonly lane: string;
  readonly ref: string;
  readonly dispatcher: string;
  /** Whether the event was ended by its owner or by the retention period, so the claim only holds its lane. */
  readonly isEnded: boolean;
}

export function claimsOf({ claims }: Pick<Dump, 'claims'>): HeldClaim[] {
  return Array.from(claims, ([lane, text]) => ({
    slot: lane.slice(0, 8),
    lane,
    ref: text.slice(1, 16),
    dispatcher: text.slice(16),
    isEnded: text.startsWith('x'),
  }));
}

/** Returns `ref` or `ref:replay` for a lane and a ref. */
export function nameOf(lane: string, ref: string): string {
  const [, after] = lane.split('\x01');
  const replay = after?.split('\0')[0];
  return replay === undefined ? ref : `${ref}:${replay}`;
}

/** Returns the names of the open deliveries of each slot. */
export function openOf(dump: Dump): Map<string, Set<string>> {
  const open = new Map<string, Set<string>>();
  const add = (lane: string, ref: string) => {
    const slot = lane.slice(0, 8);
    open.set(slot, (open.get(slot) ?? new Set()).add(nameOf(lane, ref)));
  };
  for (const entry of dump.pending.keys()) add(entry.slice(0, -16), entry.slice(-15));
  for (const { lane, ref, isEnded } of claimsOf(dump)) if (!isEnded) add(lane, ref);
  return open;
}

/**
 * Returns the number of keys changed since Redis was started. If it is the same before and after, nothing was written.
 * The content is only compared to find out what has changed.
 */
export async function changesOf(redis: RedisClient): Promise<number> {
  const [info] = (await redis.callAll('INFO', 'persistence')) as [string];
  return Number(/rdb_changes_since_last_save:(\d+)/.exec(info)?.[1]);
}

/** Returns the keys with different content in two dumps, and the parts. */
export function changedKeys(before: WorldDump, after: WorldDump): string[] {
  const changed: string[] = [];
  const text = (value: unknown) =>
    JSON.stringify(value, (_, each: unknown) => (each instanceof Map || each instanceof Set ? [...each] : each));
  for (const kind of ['hashes', 'sorted', 'parts'] as const) {
    for (const key of new Set([...before[kind].keys(), ...after[kind].keys()])) {
      if (text(before[kind].get(key)) !== text(after[kind].get(key))) changed.push(key);
    }
  }
  return changed;
}

const DROP = `
local keys = redis.call('KEYS', ARGV[1] .. '*')
for _, key in ipairs(keys) do redis.call('DEL', key) end
return #keys`;

/** Removes all data of a slot, using its hash tag. */
export async function dropSlot(redis: RedisClient, tag: string): Promise<void> {
  await redis.callAll('EVAL', DROP, 0, tag);
}

/** The Redis slot that contains all data of a stream. */
export function partTag(tenant: string, queue: string): string {
  const { meta } = partKeys({ tenant, queue, gen: '', number: PART_NUMBER });
  return meta.slice(0, meta.indexOf('}') + 1);
}
