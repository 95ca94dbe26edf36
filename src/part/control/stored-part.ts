import type { RedisClient } from '../../redis/client.ts';
import { type Part, partKeys } from '../keys.ts';

/** Control data of a part, as found in Redis. */
export interface StoredPart {
  /** Fields of `meta`. */
  readonly meta: Readonly<Record<string, string>>;
  /** Text of each row, by slot. */
  readonly rows: ReadonlyMap<string, string>;
  /** Text of each endpoint, by slot. */
  readonly endpoints: ReadonlyMap<string, string>;
  /** Whether the activations are complete. */
  readonly isMarked: boolean;
  /** Activations, as slot followed by group key. Undefined if they were not read. */
  readonly activations: ReadonlySet<string> | undefined;
}

/** Fields that one command reads. */
const PAGE = 1_000;
/** See `gate/activations.lua`. */
const [ENTRY, SLOT, SUFFIX] = [23, 8, 3];

async function* scanHash(redis: Pick<RedisClient, 'call'>, key: string): AsyncGenerator<readonly [string, string]> {
  let cursor = '0';
  do {
    const [next, flat] = (await redis.call('hscan', key, cursor, 'COUNT', PAGE)) as [string, string[]];
    for (let at = 0; at < flat.length; at += 2) yield [flat[at] as string, flat[at + 1] as string];
    cursor = next;
  } while (cursor !== '0');
}

async function readHash(redis: Pick<RedisClient, 'call'>, key: string): Promise<Map<string, string>> {
  const fields = new Map<string, string>();
  for await (const [field, value] of scanHash(redis, key)) fields.set(field, value);
  return fields;
}

/** Adds the activations in a field of `keys`, which has a group key and, for all but its first list, a number. */
function addActivations(into: Set<string>, field: string, list: string): void {
  const groupKey = field.split('\0', 1)[0] as string;
  const end = list.length - (list.length % ENTRY === SUFFIX ? SUFFIX : 0);
  for (let at = 0; at < end; at += ENTRY) into.add(list.slice(at, at + SLOT) + groupKey);
}

/** Reads the control data of a part, a page at a time. */
export async function readPart(redis: Pick<RedisClient, 'call'>, part: Part): Promise<StoredPart> {
  const keys = partKeys(part);
  const meta = Object.fromEntries(await readHash(redis, keys.meta));
  const activations = new Set<string>();
  let isMarked = false;
  for await (const [field, list] of scanHash(redis, keys.keys)) {
    if (field === '') isMarked = true;
    else addActivations(activations, field, list);
  }
  return {
    meta,
    rows: await readHash(redis, keys.subs),
    endpoints: await readHash(redis, keys.endpoints),
    isMarked,
    activations,
  };
}
