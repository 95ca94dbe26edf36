import { z } from 'zod';
import { queryInteger } from '../../api/query-integer.ts';
import { Refusal } from '../../http/refusal.ts';

const MOST = 250;
const DEFAULT = 50;
/** Bytes of JSON after which a page ends; one item is always on it. As `pull` does it. */
export const PAGE_BYTES = 1_048_576;

/** Query parameters of every list. */
export const PageQuery = z.strictObject({
  limit: queryInteger(/^([1-9]\d?|1\d\d|2[0-4]\d|250)$/, `has to be a number from 1 to ${MOST}`, {
    minimum: 1,
    maximum: MOST,
    description: `Most items of the answer, 1 to ${MOST}. Default ${DEFAULT}.`,
    example: 50,
  }),
  cursor: z
    .string()
    .max(1_024)
    .optional()
    .meta({ description: 'The nextCursor of the page before. Absent: from the beginning.' }),
});

/** `{data, nextCursor}` of a list. */
export function pageOf<T extends z.ZodType>(item: T) {
  return z.object({
    data: z.array(item).meta({ description: 'The items of this page.' }),
    nextCursor: z.string().nullable().meta({ description: 'For the next page; null on the last one.' }),
  });
}

function keyOfCursor(cursor: string): string {
  const text = Buffer.from(cursor, 'base64url');
  const key = text.toString('utf8');
  // Whatever does not come back as it was is none of ours.
  if (key === '' || Buffer.from(key, 'utf8').toString('base64url') !== cursor) throw new Refusal('malformed_cursor');
  return key;
}

/** Returns how many of the items, from the first on, a page of `PAGE_BYTES` holds: one at least. */
function fitting<T>(items: readonly T[], entryOf: (item: T) => object): number {
  let bytes = 0;
  const end = items.findIndex((item, i) => {
    bytes += Buffer.byteLength(JSON.stringify(entryOf(item)));
    return i > 0 && bytes > PAGE_BYTES;
  });
  return end < 0 ? items.length : end;
}

/**
 * One page of what is in memory, in the order of `keyOf`. Items that come or go between two pages move nothing else: a
 * cursor is a key, not a number.
 *
 * @param entryOf what an item is in the answer, where items may be large: the page then ends at `PAGE_BYTES`
 * @throws Refusal 400 `malformed_cursor`
 */
export function paginate<T>(
  items: readonly T[],
  keyOf: (item: T) => string,
  { limit = DEFAULT, cursor }: { readonly limit?: number | undefined; readonly cursor?: string | undefined },
  entryOf?: (item: T) => object,
): { readonly data: T[]; readonly nextCursor: string | null } {
  const after = cursor === undefined ? '' : keyOfCursor(cursor);
  const sorted = items.map(item => [keyOf(item), item] as const).toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  const rest = sorted.filter(([key]) => key > after);
  const most = rest.slice(0, limit);
  const page =
    entryOf === undefined
      ? most
      : most.slice(
          0,
          fitting(most, ([, item]) => entryOf(item)),
        );
  const last = page.at(-1);
  const more = rest.length > page.length && last !== undefined;
  return {
    data: page.map(([, item]) => item),
    nextCursor: more ? Buffer.from(last[0], 'utf8').toString('base64url') : null,
  };
}
