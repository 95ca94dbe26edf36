import type { RedisClient } from '../../redis/client.ts';
import type { SlotPatch } from '../../redis/control-plan.ts';
import { CLUSTER_KEYS } from '../../redis/keys.ts';
import type { Part } from '../keys.ts';

/** The list of all parts, which dispatchers divide. */
export interface ListedParts {
  /** Lists parts with their generation. */
  readonly add: (fence: number, parts: readonly Part[]) => Promise<void>;
  readonly remove: (fence: number, parts: readonly Part[]) => Promise<void>;
  /** Returns the parts that are not listed, or with another generation. */
  readonly missing: (parts: readonly Part[], pace?: () => Promise<void>) => Promise<readonly Part[]>;
  /** Reads the list a page at a time; some may come twice. */
  readonly scan: (pace: () => Promise<void>) => AsyncGenerator<readonly Part[]>;
}

/** Names of one command. */
const PAGE = 1_000;
const NO_PACE = () => Promise.resolve();

function nameOf({ tenant, queue, number }: Part): string {
  return `${tenant}:${queue}:${number}`;
}

function parse(name: string, gen: string): Part {
  const [tenant = '', queue = '', number = ''] = name.split(':');
  return { tenant, queue, gen, number: Number(number) };
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
    const op = isListed
      ? { command: 'HSET' as const, key, args: changed.flatMap(part => [nameOf(part), part.gen]) }
      : { command: 'HDEL' as const, key, args: changed.map(nameOf) };
    await patch(fence, [{ meta: CLUSTER_KEYS.meta, ops: [op] }]);
    for (const part of changed) await redis.call('spublish', CLUSTER_KEYS.partsChanged, nameOf(part));
  }

  const missing = (parts: readonly Part[], pace = NO_PACE) => filter(parts, pace, (gen, part) => gen !== part.gen);

  return {
    add: async (fence, parts) => change(fence, await missing(parts), true),
    remove: async (fence, parts) => change(fence, await filter(parts, NO_PACE, gen => gen !== null), false),
    missing,
    async *scan(pace) {
      let cursor = '0';
      do {
        await pace();
        const [next, flat] = (await redis.call('hscan', key, cursor, 'COUNT', PAGE)) as [string, string[]];
        cursor = next;
        const page: Part[] = [];
        for (let at = 0; at < flat.length; at += 2) page.push(parse(flat[at] as string, flat[at + 1] as string));
        if (page.length > 0) yield page;
      } while (cursor !== '0');
    },
  };
}
