import type { SlotPatch } from '../../record/control-plan.ts';
import type { RedisClient } from '../../redis/client.ts';
import { CLUSTER_KEYS } from '../../redis/keys.ts';
import type { Part } from '../keys.ts';

/** The number of names in each command. */
const PAGE = 1_000;
const NO_PACE = () => Promise.resolve();

function nameOf({ tenant, queue, number }: Part): string {
  return `${tenant}:${queue}:${number}`;
}

/** Returns the part that has this name in the list of all parts. */
export function parseListedPart(name: string, gen: string): Part {
  const [tenant = '', queue = '', number = ''] = name.split(':');
  return { tenant, queue, gen, number: Number(number) };
}

/** Yields the names and the generations of all parts. The list is read one page at a time. May contain duplicates. */
async function* scanList(
  redis: Pick<RedisClient, 'call'>,
  pace = NO_PACE,
): AsyncGenerator<(readonly [name: string, gen: string])[]> {
  let cursor = '0';
  do {
    await pace();
    const [next, flat] = (await redis.call('hscan', CLUSTER_KEYS.parts, cursor, 'COUNT', PAGE)) as [string, string[]];
    cursor = next;
    const page: [string, string][] = [];
    for (let at = 0; at < flat.length; at += 2) page.push([flat[at] as string, flat[at + 1] as string]);
    yield page;
  } while (cursor !== '0');
}

/** Reads the list of all parts. Contains the generation of each part, by its name. */
export async function readParts(redis: Pick<RedisClient, 'call'>): Promise<Map<string, string>> {
  const parts = new Map<string, string>();
  for await (const page of scanList(redis)) for (const [name, gen] of page) parts.set(name, gen);
  return parts;
}

/** Reads the generation of a single part. If it is not in the list, this returns undefined. */
export async function readGeneration(redis: Pick<RedisClient, 'call'>, name: string): Promise<string | undefined> {
  return ((await redis.call('hget', CLUSTER_KEYS.parts, name)) as string | null) ?? undefined;
}

/** The list of all parts. The list is divided among all dispatchers. */
export interface ListedParts {
  /** Lists all parts, including their generation. */
  readonly add: (fence: number, parts: readonly Part[]) => Promise<void>;
  readonly remove: (fence: number, parts: readonly Part[]) => Promise<void>;
  /** Returns all parts which are not in the list, or which have another generation. */
  readonly missing: (parts: readonly Part[], pace?: () => Promise<void>) => Promise<readonly Part[]>;
  /** Reads the list one page at a time. Some parts may be returned twice. */
  readonly scan: (pace: () => Promise<void>) => AsyncGenerator<readonly Part[]>;
}

/** @param patch writes to the hashes of the cluster, fenced */
export function createListedParts(
  redis: Pick<RedisClient, 'call'>,
  patch: (fence: number, patches: readonly SlotPatch[]) => Promise<void>,
): ListedParts {
  const key = CLUSTER_KEYS.parts;

  async function filter(
    parts: readonly Part[],
    pace: () => Promise<void>,
    isWanted: (gen: unknown, part: Part) => boolean,
  ) {
    const found: Part[] = [];
    for (let at = 0; at < parts.length; at += PAGE) {
      const page = parts.slice(at, at + PAGE);
      await pace();
      const gens = (await redis.call('hmget', key, ...page.map(nameOf))) as (string | null)[];
      found.push(...page.filter((part, i) => isWanted(gens[i], part)));
    }
    return found;
  }

  async function change(fence: number, changed: readonly Part[], isListed: boolean): Promise<void> {
    if (changed.length === 0) return;
    const names = changed.map(nameOf);
    const ops = isListed
      ? [{ command: 'HSET' as const, key, args: changed.flatMap((part, i) => [names[i] as string, part.gen]) }]
      : [key, CLUSTER_KEYS.stored].map(each => ({ command: 'HDEL' as const, key: each, args: names }));
    await patch(fence, [{ meta: CLUSTER_KEYS.meta, ops }]);
    for (const part of changed) await redis.call('spublish', CLUSTER_KEYS.partsChanged, nameOf(part));
  }

  const missing = (parts: readonly Part[], pace = NO_PACE) => filter(parts, pace, (gen, part) => gen !== part.gen);

  return {
    add: async (fence, parts) => change(fence, await missing(parts), true),
    remove: async (fence, parts) => change(fence, await filter(parts, NO_PACE, gen => gen !== null), false),
    missing,
    async *scan(pace) {
      for await (const page of scanList(redis, pace)) {
        if (page.length > 0) yield page.map(([name, gen]) => parseListedPart(name, gen));
      }
    },
  };
}
