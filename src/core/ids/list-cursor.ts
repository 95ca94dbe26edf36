import { createHash } from 'node:crypto';

/**
 * The name of a list, and the ids and keys that determine its items. Filters that only leave out items are not included,
 * so they can be changed between two pages.
 */
export type ListName = readonly [name: string, ...values: (string | undefined)[]];

/** The number of characters at the start of a cursor that identify its list. */
const LIST_CHARACTERS = 4;

function prefixOf(list: ListName): string {
  return createHash('sha256').update(JSON.stringify(list)).digest('base64url').slice(0, LIST_CHARACTERS);
}

/** Returns the cursor of a position in a list. Null if there is no position. */
export function cursorOf(list: ListName, position: string | undefined): string | null {
  return position === undefined ? null : `${prefixOf(list)}${position}`;
}

/** Returns the position of a cursor. Undefined if the cursor belongs to another list. */
export function positionIn(list: ListName, cursor: string): string | undefined {
  return cursor.startsWith(prefixOf(list)) ? cursor.slice(LIST_CHARACTERS) : undefined;
}
