import type { RedisClient } from '../../redis/client.ts';
import { CLUSTER_KEYS } from '../../redis/keys.ts';
import type { Part } from '../keys.ts';

const PAGE = 1_000;

/** Name and generation of a part, as in the list of all parts. */
export type ListedPart = readonly [name: string, gen: string];

/** Reads the list of all parts, a page at a time. */
export async function readParts(redis: Pick<RedisClient, 'call'>): Promise<Map<string, string>> {
  const parts = new Map<string, string>();
  let cursor = '0';
  do {
    const [next, flat] = (await redis.call('hscan', CLUSTER_KEYS.parts, cursor, 'COUNT', PAGE)) as [string, string[]];
    for (let at = 0; at < flat.length; at += 2) parts.set(flat[at] as string, flat[at + 1] as string);
    cursor = next;
  } while (cursor !== '0');
  return parts;
}

/** Reads the generation of one part, or undefined if it isn't listed. */
export async function readGeneration(redis: Pick<RedisClient, 'call'>, name: string): Promise<string | undefined> {
  return ((await redis.call('hget', CLUSTER_KEYS.parts, name)) as string | null) ?? undefined;
}

export function parseListedPart([name, gen]: ListedPart): Part {
  const [tenant = '', queue = '', number = ''] = name.split(':');
  return { tenant, queue, gen, number: Number(number) };
}
