import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';
import { type Part, partKeys, REMOVED } from '../keys.ts';
import { createActivationLists } from './activation-lists.ts';

/** A part's control data, as it was found in Redis. */
export interface StoredPart {
  /** The fields of `meta`. */
  readonly meta: Readonly<Record<string, string>>;
  /** The text of each row, by slot. */
  readonly rows: ReadonlyMap<string, string>;
  /** The text of each endpoint, by slot. */
  readonly endpoints: ReadonlyMap<string, string>;
  /** True if all activations are complete. */
  readonly isMarked: boolean;
  /** The activations. The key is the slot followed by the group key. If they have not been read, this is undefined. */
  readonly activations: ReadonlySet<string> | undefined;
  /** The fields of activations which need to be written again. */
  readonly damaged: readonly string[];
  /**
   * The activations whose lanes are still parked, because the process that has activated them was stopped. The slot,
   * followed by the group key.
   */
  readonly unparking: readonly string[];
}

const READ_PAGE = readNamedScript(new URL('read-page.lua', import.meta.url));
/** The number of fields that a call reads from each hash. The largest field for activations has 3 KB. */
const PAGE = 200;

function* pairsOf(flat: readonly string[]): Generator<readonly [string, string]> {
  for (let at = 0; at < flat.length; at += 2) yield [flat[at] as string, flat[at + 1] as string];
}

/**
 * Reads a part's control data. The data is read one page at a time. Concurrent changes may or may not be included.
 *
 * @param pace awaited before each command
 */
export async function readPart(redis: ScriptClient, part: Part, pace?: () => Promise<void>): Promise<StoredPart> {
  const lists = createActivationLists();
  const rows = new Map<string, string>();
  const endpoints = new Map<string, string>();
  let meta: StoredPart['meta'] = {};
  let isMarked = false;
  const unparking: string[] = [];
  let cursors: readonly string[] = ['0', '0', '0', '0'];
  while (cursors.some(cursor => cursor !== '-')) {
    await pace?.();
    const [keys, subs, ends, off] = cursors as [string, string, string, string];
    const args = { keys, subs, endpoints: ends, off, count: PAGE };
    const [, ...page] = await callScript(redis, READ_PAGE, { keys: partKeys(part), args });
    const [fields, keysNext, lines, subsNext, rowTexts, endsNext, endpointTexts, offNext, marks] = page as [
      string[],
      ...[string, string[], string, string[], string, string[], string, string[]],
    ];
    meta = Object.fromEntries(pairsOf(fields));
    for (const [field, list] of pairsOf(lines)) {
      if (field === '') isMarked = true;
      else lists.add(field, list);
    }
    for (const [slot, text] of pairsOf(rowTexts)) rows.set(slot, text);
    for (const [slot, text] of pairsOf(endpointTexts)) endpoints.set(slot, text);
    unparking.push(...marks);
    cursors = [keysNext, subsNext, endsNext, offNext];
  }
  return { meta, rows, endpoints, isMarked, unparking, ...lists.read() };
}

/** Returns all old generations that need to be removed before this generation can be started or continued. */
export function formerGenerations({ meta: { gen, was } }: StoredPart, part: Part): string[] {
  const former = new Set<string>();
  for (const each of [gen, was]) {
    if (each === undefined || each === REMOVED || (each === part.gen && gen !== REMOVED)) continue;
    former.add(each);
  }
  return [...former];
}
