import type { RedisClient } from '../../redis/client.ts';
import { parseRow } from '../gate/subscription-row.ts';
import { type Part, partKeys } from '../keys.ts';

/** See `gate/activations.lua`. */
const [ENTRY, SLOT, SUFFIX] = [23, 8, 3];
/** Fields of up to 3 KB each that one command reads. */
const LISTS = 16;
const ROWS = 500;

type HashClient = Pick<RedisClient, 'call'>;

async function readFields(
  redis: HashClient,
  key: string,
  fields: readonly string[],
  atOnce: number,
): Promise<(string | null)[]> {
  const values: (string | null)[] = [];
  for (let at = 0; at < fields.length; at += atOnce) {
    values.push(...((await redis.call('hmget', key, ...fields.slice(at, at + atOnce))) as (string | null)[]));
  }
  return values;
}

function addSlots(into: Set<string>, list: string): void {
  const end = list.length - (list.length % ENTRY);
  for (let at = 0; at < end; at += ENTRY) into.add(list.slice(at, at + SLOT));
}

/** Reads the slots that each group key is active for; undefined where the activations are not whole. */
async function readSlots(
  redis: HashClient,
  key: string,
  groupKeys: readonly string[],
): Promise<Map<string, Set<string>> | undefined> {
  const lists = await readFields(redis, key, groupKeys, LISTS);
  const slots = new Map<string, Set<string>>();
  for (const [i, groupKey] of groupKeys.entries()) {
    const first = lists[i] ?? '';
    const found = new Set<string>();
    addSlots(found, first);
    const groups = first.length % ENTRY === SUFFIX ? Number(first.slice(-SUFFIX)) : 1;
    const names = Array.from({ length: groups - 1 }, (_, n) => `${groupKey}\0${n + 2}`);
    for (const list of await readFields(redis, key, names, LISTS)) addSlots(found, list ?? '');
    slots.set(groupKey, found);
  }
  // Last, so that nothing was lost before.
  return (await redis.call('hexists', key, '')) === 1 ? slots : undefined;
}

/**
 * Reads which integrations each group key is active for, in steps: what changes meanwhile may be in it or not. Undefined
 * where control data are missing.
 */
export async function readOpenIntegrations(redis: HashClient, part: Part, groupKeys: readonly string[]) {
  const keys = partKeys(part);
  const slots = await readSlots(redis, keys.keys, groupKeys);
  const [ready, gen, payer, plan] = (await redis.call('hmget', keys.meta, 'ready', 'gen', 'payer', 'plan')) as (
    | string
    | null
  )[];
  if (slots === undefined || ready !== '1' || gen !== part.gen) return undefined;
  const all = [...new Set([...slots.values()].flatMap(each => [...each]))];
  const rows = await readFields(redis, keys.subs, all, ROWS);
  const integrationOf = new Map(all.map((slot, i) => [slot, parseRow(rows[i] ?? '')?.integration ?? '']));
  const gates = new Map<string, ReadonlySet<string>>();
  for (const [groupKey, open] of slots)
    gates.set(groupKey, new Set([...open].map(slot => integrationOf.get(slot) ?? '')));
  return { payer: payer ?? '', plan: plan ?? '', gates };
}
