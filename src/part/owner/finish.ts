import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';
import { recordKeysOf } from '../inbox/details.ts';
import type { SlotOfPart } from '../inbox/find-part.ts';
import { partKeys } from '../keys.ts';

const FINISH = readNamedScript(new URL('finish.lua', import.meta.url));
export const FINISHED_AT_ONCE = 200;

/**
 * Used to identify a delivery: its lane without the slot, which is its group key. For a replay, it is followed by \1
 * and the replay id.
 */
export interface Keyed {
  readonly key: string;
  readonly ref: string;
}

/** Ends deliveries as skipped (s) or acknowledged (d); a letter for each: o (ended now), n (it was not open). */
export type Finish = (
  at: SlotOfPart,
  outcome: 's' | 'd',
  items: readonly Keyed[],
) => Promise<string[] | 'GONE' | 'PUSHED'>;

export function createFinish(redis: ScriptClient): Finish {
  return async function finish({ part, slot }, outcome, items) {
    const letters: string[] = [];
    do {
      const some = items.slice(letters.length, letters.length + FINISHED_AT_ONCE);
      const { listed, indexes } = recordKeysOf(
        part,
        some.map(({ ref }) => ref),
      );
      const [word, text] = await callScript(redis, FINISH, {
        keys: partKeys(part),
        listed,
        args: { gen: part.gen, slot, outcome },
        more: some.flatMap(({ key, ref }, i) => [key, ref, indexes[i] as number]),
      });
      if (word !== 'OK') return word as 'GONE';
      letters.push(...(text as string));
    } while (letters.length < items.length);
    return letters;
  };
}
