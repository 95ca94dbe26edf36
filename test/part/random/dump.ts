import { type Part, partKeys, recordsBucketOf, unpackSlots } from '../../../src/part/keys.ts';
import { msOfRef } from '../../../src/part/lanes/ref.ts';
import { type AttemptNote, type DeliveryRecord, noteText, parseRecords } from '../../../src/part/records/record.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import type { NamedScript } from '../../../src/redis/named-scripts.ts';
import { LIMITS } from './limits.ts';

const HASHES = [
  'meta',
  'keys',
  'subs',
  'endpoints',
  'positions',
  'claims',
  'lanes',
  'tries',
  'off',
  'counts',
  'health',
  'ready',
  'replays',
  'deadLetters',
  'answers',
] as const;
const SETS = ['pending', 'waiting', 'turns', 'retries', 'final', 'dropped'] as const;
const PACKED = ['late', 'lists', 'body'] as const;
const KEYS = [...HASHES, ...SETS, ...PACKED, 'log'] as const;

const DUMP: NamedScript = {
  name: 'dump',
  source: `#!lua flags=no-writes
local out = {}
for at = 1, #KEYS do
  local kind = redis.call('TYPE', KEYS[at]).ok
  if kind == 'hash' then out[at] = redis.call('HGETALL', KEYS[at])
  elseif kind == 'zset' then out[at] = redis.call('ZRANGE', KEYS[at], 0, -1, 'WITHSCORES')
  elseif kind == 'stream' then out[at] = redis.call('XRANGE', KEYS[at], '-', '+')
  else out[at] = {} end
end
return out`,
  keys: KEYS,
  listedKeys: 'records',
  args: [],
  takesMore: false,
};

export interface LogEntry {
  readonly ref: string;
  readonly groupKey: string;
  readonly size: number;
  readonly cost: number;
  readonly slots: readonly string[];
}

/** The complete content of a part in Redis, as text. */
export interface Dump
  extends Readonly<Record<(typeof HASHES)[number], ReadonlyMap<string, string>>>,
    Readonly<Record<(typeof SETS)[number], ReadonlyMap<string, number>>> {
  readonly log: readonly LogEntry[];
  readonly bodies: ReadonlySet<string>;
  /** The slots to which an event was routed later, by ref. */
  readonly late: ReadonlyMap<string, readonly string[]>;
  /** The refs in the inbox of a slot, by slot. */
  readonly lists: ReadonlyMap<string, readonly string[]>;
  /** The records by slot, ref, and `:replay` for replays. There must not be more than one record. */
  readonly records: ReadonlyMap<string, readonly DeliveryRecord[]>;
  /** The bytes for failed deliveries, according to the keys of their records. */
  readonly failedBytes: number;
}

/** Returns the ref up to which a sweep is removing events. */
export const cutOf = ({ meta }: Dump) => meta.get('cut')?.slice(0, 15) ?? '';

/** Returns the result of the attempts of a slot, and its start time. Undefined before the first attempt. */
export function endingOf({ counts }: Dump, slot: string): string | undefined {
  const note = counts.get(slot)?.split(' ')[8] ?? '-';
  return note.startsWith('-') ? undefined : note.slice(0, 12);
}

/** Returns the first hour with stored ids of producers, or undefined if there are none. */
export function firstHourOfIds({ meta }: Dump): number | undefined {
  const text = meta.get('ids');
  return text === undefined ? undefined : Number(text.split(' ')[0]);
}

/** Replays and test events don't use the producer's quota. `name`: without the slot. */
const usesQuota = (name: string) => name.length === 15 && name.slice(11) < 'ffe0';

/** Returns the number of bytes that failed deliveries should use. Must be the same as in `records/records.lua`. */
export function failedBytesOf({ records, log, meta }: Pick<Dump, 'records' | 'log' | 'meta'>): number {
  let bytes = 0;
  const [, cursor, removed = ''] = meta.get('cut')?.split(' ') ?? [];
  const events = new Set(log.map(({ ref }) => ref).filter(ref => cursor !== '=' || ref >= removed));
  const kept = new Set<string>();
  for (const [name, all] of records) {
    if (!usesQuota(name.slice(8))) continue;
    const ms = msOfRef(name.slice(8));
    const attemptText = (each: AttemptNote & { readonly endedMs: number }, more = '') =>
      `${(each.endedMs - ms).toString(16)} ${more}${noteText(each)}`;
    for (const record of all) {
      if (!events.has(name.slice(8))) kept.add(name.slice(8));
      if (record.outcome === 'delivered') continue;
      const text = attemptText(record, `${record.attempts.toString(16)} `);
      const failed = record.failed.map(each => `,${attemptText(each)}`).join('');
      bytes += 145 + Math.ceil((9 / 8) * `slot5x${text}${failed};`.length);
    }
  }
  return bytes + 90 * kept.size;
}

/** How many bytes the open deliveries should use. As in `stored/open-cost.lua`. */
export function openBytesOf({ pending, claims, tries }: Dump): number {
  const entries = [...pending.keys()];
  for (const [lane, claim] of claims) {
    if (!claim.startsWith('x')) entries.push(lane.at(-16) === '\0' ? lane : `${lane}\0${claim.slice(1, 16)}`);
  }
  let bytes = 0;
  for (const entry of entries) {
    if (entry.includes('\x01') || !usesQuota(entry.slice(-15))) continue;
    const failed = /^\d+ \d+ \d+(.*)$/.exec(tries.get(entry) ?? '')?.[1] ?? '';
    bytes += 450 + Math.ceil((4 / 3) * Math.max(0, failed.length - LIMITS.shortFailed));
  }
  return bytes;
}

function pairs<T>(flat: readonly Buffer[], value: (of: Buffer) => T): Map<string, T> {
  const map = new Map<string, T>();
  for (let at = 0; at < flat.length; at += 2) map.set(String(flat[at]), value(flat[at + 1] as Buffer));
  return map;
}

function refOfId(id: string): string {
  const [ms, sequence] = id.split('-').map(Number) as [number, number];
  return ms.toString(16).padStart(11, '0') + sequence.toString(16).padStart(4, '0');
}

function parseLog(entries: readonly [Buffer, Buffer[]][]): LogEntry[] {
  return entries.map(([id, fields]) => ({
    ref: refOfId(String(id)),
    groupKey: String(fields[1]),
    size: Number(fields[5]),
    cost: Number(fields[7]),
    slots: unpackSlots(fields[9] as Buffer),
  }));
}

function unpackRefs(chunk: Buffer, at: number): string[] {
  const refs: string[] = [];
  for (; at < chunk.length; at += 8) {
    refs.push(
      chunk.readUIntBE(at, 6).toString(16).padStart(11, '0') +
        chunk
          .readUInt16BE(at + 6)
          .toString(16)
          .padStart(4, '0'),
    );
  }
  return refs;
}

function parseLists(flat: readonly Buffer[]): Map<string, string[]> {
  const fields = pairs(flat, of => of);
  const lists = new Map<string, string[]>();
  for (const [slot, head] of fields) {
    if (slot.includes('\0')) continue;
    const refs: string[] = [];
    for (let number = head.readUInt32BE(0); number < head.readUInt32BE(4); number++) {
      refs.push(...unpackRefs(fields.get(`${slot}\0${number}`) ?? Buffer.alloc(0), 0));
    }
    lists.set(slot, [...refs, ...unpackRefs(head, 8)]);
  }
  return lists;
}

/** Adds all records of a key, and returns the bytes for failed deliveries. */
function addRecords(flat: readonly Buffer[], into: Map<string, DeliveryRecord[]>): number {
  const fields = pairs(flat, of => of);
  const bytes = Number(fields.get('') ?? 0);
  fields.delete('');
  for (const [field, chunk] of fields) {
    const name = field.split('\0')[0] as string;
    // The bytes of replays and test events of a slot.
    if (name.length === 8) continue;
    for (const record of parseRecords(name.slice(0, 15), chunk)) {
      const key = record.slot + name;
      into.set(key, [...(into.get(key) ?? []), record]);
    }
  }
  return bytes;
}

/** Reads a part, including records of events accepted since `fromMs`. */
export async function dumpPart(redis: RedisClient, part: Part, fromMs: number, nowMs: number): Promise<Dump> {
  const keys = partKeys(part);
  const listed: string[] = [];
  for (let bucket = recordsBucketOf(fromMs); bucket <= recordsBucketOf(nowMs); bucket++) {
    listed.push(keys.records(bucket));
  }
  const all = (await redis.runNamedBuffers(DUMP, { keys, listed, args: {} })) as unknown as Buffer[][];
  const dump: Record<string, unknown> = {};
  for (const [at, name] of HASHES.entries()) dump[name] = pairs(all[at] as Buffer[], String);
  for (const [at, name] of SETS.entries()) dump[name] = pairs(all[HASHES.length + at] as Buffer[], Number);
  const [late, lists, body, log, ...records] = all.slice(HASHES.length + SETS.length) as Buffer[][];
  const found = new Map<string, DeliveryRecord[]>();
  let failedBytes = 0;
  for (const each of records) failedBytes += addRecords(each, found);
  return {
    ...(dump as unknown as Dump),
    late: pairs(late as Buffer[], unpackSlots),
    lists: parseLists(lists as Buffer[]),
    bodies: new Set(pairs(body as Buffer[], () => 0).keys()),
    log: parseLog(log as unknown as [Buffer, Buffer[]][]),
    records: found,
    failedBytes,
  };
}
