import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';
import { type Part, partKeys } from '../keys.ts';

const EVICT = readNamedScript(new URL('evict.lua', import.meta.url));
const MINE = readNamedScript(new URL('mine.lua', import.meta.url));

/** Takes all claims of a dispatcher that was not heard of for too long. HELD: it is at work (again); GONE: the part is. */
export type Evict = (
  part: Part,
  dispatcher: string,
) => Promise<{ answer: 'OK'; claims: number } | { answer: 'HELD' | 'GONE' }>;

/** Claims that a dispatcher holds: for one that missed a push or an answer. None, of a part that is gone. */
export type ReadOwnClaims = (
  part: Part,
  dispatcher: string,
) => Promise<readonly { readonly lane: string; readonly ref: string }[]>;

export function createEvict(redis: ScriptClient): Evict {
  return async function evict(part, dispatcher) {
    let claims = 0;
    let cursor = '0';
    do {
      const args = { gen: part.gen, dispatcher, cursor };
      const [answer, next, count] = await callScript(redis, EVICT, { keys: partKeys(part), args });
      if (answer !== 'OK') return { answer: answer as 'HELD' };
      claims += count as number;
      cursor = next as string;
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
      // HSCAN may say the same twice.
      for (let at = 0; at < page.length; at += 2) claims.set(page[at] as string, page[at + 1] as string);
      cursor = next as string;
    } while (cursor !== '0');
    return Array.from(claims, ([lane, ref]) => ({ lane, ref }));
  };
}
