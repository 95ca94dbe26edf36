import { z } from 'zod';
import { queryInteger } from '../../api/query-integer.ts';
import { cursorOf, type ListName, positionIn } from '../../core/ids/list-cursor.ts';
import { Refusal } from '../../http/refusal.ts';

const MOST = 250;
const DEFAULT = 50;
/** The number of pages of items to collect before sorting them. */
const SORTED_AT_ONCE = 4;
/** The maximum page size in bytes of JSON. Each page contains at least one item. `pull` uses the same limit. */
const PAGE_BYTES = 1_048_576;

/** Query parameters shared by all lists. */
export const PageQuery = z.strictObject({
  limit: queryInteger(/^([1-9]\d?|1\d\d|2[0-4]\d|250)$/, `must be a number from 1 to ${MOST}`, {
    minimum: 1,
    maximum: MOST,
    description: `The maximum number of items to return, between 1 and ${MOST}. Defaults to ${DEFAULT}.`,
    example: 50,
  }),
  cursor: z.string().max(1_024).optional().meta({
    description:
      'A cursor for use in pagination. Set this to the nextCursor of the previous page. To retrieve the first page, omit this parameter.',
  }),
});

/** Returns the schema for a list of named items, which contains `{data, nextCursor}` and is called `…Page`. */
export function pageOf<T extends z.ZodType>(item: T) {
  return z
    .object({
      data: z.array(item).meta({ description: 'The items on the current page.' }),
      nextCursor: z
        .string()
        .nullable()
        .meta({ description: 'A cursor for retrieving the next page, or null on the last page.' }),
    })
    .meta({ id: `${item.meta()?.id}Page` });
}

/**
 * Returns the position of a cursor, or undefined if there is no cursor.
 *
 * @throws Refusal 400 `malformed_cursor` if the cursor belongs to another list
 */
export function positionOf(list: ListName, cursor: string | undefined): string | undefined {
  if (cursor === undefined) return undefined;
  const position = positionIn(list, cursor);
  if (position === undefined) throw new Refusal('malformed_cursor');
  return position;
}

function keyOfPosition(position: string): string {
  const text = Buffer.from(position, 'base64url');
  const key = text.toString('utf8');
  // If encoding the key does not result in the same position, the position was not created by this function.
  if (key === '' || Buffer.from(key, 'utf8').toString('base64url') !== position) throw new Refusal('malformed_cursor');
  return key;
}

/** Returns the number of items at the start that fit into `PAGE_BYTES`. Never less than one. */
function fitting<T>(items: readonly T[], bytesOf: (item: T) => number): number {
  let bytes = 0;
  const end = items.findIndex((item, i) => {
    bytes += bytesOf(item);
    return i > 0 && bytes > PAGE_BYTES;
  });
  return end < 0 ? items.length : end;
}

/**
 * Returns the first `count` wanted items with a key after `after`, sorted by their keys. Each item is only visited once
 * instead of sorting the whole list, because the list may contain 100,000 items.
 */
function firstAfter<T>(
  items: readonly T[],
  keyOf: (item: T) => string,
  isWanted: (item: T, key: string) => boolean,
  after: string,
  count: number,
): (readonly [key: string, item: T])[] {
  let found = new Map<string, T>();
  const sort = () => [...found].toSorted(([a], [b]) => (a < b ? -1 : 1)).slice(0, count);
  let last: string | undefined;
  for (const item of items) {
    const key = keyOf(item);
    if (key <= after || (last !== undefined && key >= last) || found.has(key) || !isWanted(item, key)) continue;
    found.set(key, item);
    if (found.size < SORTED_AT_ONCE * count) continue;
    const sorted = sort();
    found = new Map(sorted);
    last = sorted.at(-1)?.[0];
  }
  return sort();
}

/** The items that a page can contain by their number, and whether there are more. */
interface Candidates<T> {
  readonly entries: readonly (readonly [key: string, item: T])[];
  readonly hasMore: boolean;
}

interface PageRequest {
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

interface PageOptions<T> {
  /** Only called for items that may belong to the page. Defaults to all items. */
  readonly isWanted?: (item: T, key: string) => boolean;
  /** Returns the size of the entry for an item as JSON. Limits a page to `PAGE_BYTES`. Set it if items may be large. */
  readonly bytesOf?: (item: T) => number;
}

interface Page<T> {
  readonly data: T[];
  readonly nextCursor: string | null;
}

function chooseCandidates<T>(
  list: ListName,
  items: readonly T[],
  keyOf: (item: T) => string,
  { limit = DEFAULT, cursor }: PageRequest,
  isWanted: (item: T, key: string) => boolean = () => true,
): Candidates<T> {
  const position = positionOf(list, cursor);
  const after = position === undefined ? '' : keyOfPosition(position);
  // One additional item is required to determine whether there is another page.
  const found = firstAfter(items, keyOf, isWanted, after, limit + 1);
  return { entries: found.slice(0, limit), hasMore: found.length > limit };
}

function pageFrom<T>(list: ListName, { entries, hasMore }: Candidates<T>, bytesOf?: (item: T) => number): Page<T> {
  const count = bytesOf === undefined ? entries.length : fitting(entries, ([, item]) => bytesOf(item));
  const page = entries.slice(0, count);
  const last = page.at(-1);
  const more = (hasMore || count < entries.length) && last !== undefined;
  return {
    data: page.map(([, item]) => item),
    nextCursor: cursorOf(list, more ? Buffer.from(last[0], 'utf8').toString('base64url') : undefined),
  };
}

/**
 * Returns a page of items in the order of `keyOf`. The cursor is a key rather than an index, so adding or removing
 * items doesn't shift the next page. If several items have the same key, only the first one that is wanted is returned.
 *
 * @param list identifies the list. Cursors of other lists are refused
 * @throws Refusal 400 `malformed_cursor`
 */
export function paginate<T>(
  list: ListName,
  items: readonly T[],
  keyOf: (item: T) => string,
  request: PageRequest,
  { isWanted, bytesOf }: PageOptions<T> = {},
): Page<T> {
  return pageFrom(list, chooseCandidates(list, items, keyOf, request, isWanted), bytesOf);
}

/**
 * Like `paginate`, for entries that take long to create. Waits for `prepare` before it calls `bytesOf`.
 *
 * @param prepare creates the entries of items that the page may contain
 */
export async function paginatePrepared<T>(
  list: ListName,
  items: readonly T[],
  keyOf: (item: T) => string,
  request: PageRequest,
  { prepare, bytesOf }: { readonly prepare: (items: readonly T[]) => Promise<void>; bytesOf: (item: T) => number },
): Promise<Page<T>> {
  const candidates = chooseCandidates(list, items, keyOf, request);
  await prepare(candidates.entries.map(([, item]) => item));
  return pageFrom(list, candidates, bytesOf);
}
