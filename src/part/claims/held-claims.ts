import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';
import { type Part, partKeys } from '../keys.ts';

const EVICT = readNamedScript(new URL('evict.lua', import.meta.url));
const MINE = readNamedScript(new URL('mine.lua', import.meta.url));

/**
 * Takes over all of the claims of a dispatcher that is not responding any more. If this fails, the next exchange lists
 * the dispatcher again. HELD: the dispatcher is active, or was active in the meantime. GONE: the part was removed.
 */
export type Evict = (
  part: Part,
  dispatcher: string,
) => Promise<{ answer: 'OK'; claims: number } | { answer: 'HELD' | 'GONE' }>;

/** Returns all claims of a dispatcher if it has missed a push or a reply. Empty if the part was removed. */
export type ReadOwnClaims = (
  part: Part,
  dispatcher: string,
) => Promise<readonly { readonly lane: string; readonly ref: string }[]>;

export function createEvict(redis: ScriptClient): Evict {
  return async function evict(part, dispatcher) {
    let claims = 0;
    let cursor = '0';
    let number = '';
    do {
      const args = { gen: part.gen, dispatcher, cursor, number };
      const [answer, next, count, last] = await callScript(redis, EVICT, { keys: partKeys(part), args });
      if (answer !== 'OK') return { answer: answer as 'HELD' };
      claims += count as number;
      cursor = next as string;
      number = last as string;
    } while (cursor !== '0');
    return { answer: 'OK', claims };
  };
}

export function createReadOwnClaims(redis: ScriptClient): ReadOwnClaims {
  return async function readOwnClaims(part, dispatcher) {
    const claims = new Map<string, string>();
    let cursor = '0';
    do {
      const args = { gen: part.gen, dispatcher, cursor };
      const [answer, next, ...page] = await callScript(redis, MINE, { keys: partKeys(part), args });
      if (answer !== 'OK') return [];
      // HSCAN can return the same field twice.
      for (let at = 0; at < page.length; at += 2) claims.set(page[at] as string, page[at + 1] as string);
      cursor = next as string;
    } while (cursor !== '0');
    return Array.from(claims, ([lane, ref]) => ({ lane, ref }));
  };
}
