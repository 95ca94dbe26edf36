import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';
import { type Part, partKeys } from '../keys.ts';

const ADVANCE = readNamedScript(new URL('advance.lua', import.meta.url));

export type AdvanceAnswer =
  | {
      readonly answer: 'OK';
      /** The number of events that were passed, and the number of references that were routed. */
      readonly events: number;
      readonly references: number;
      /** There is more to do. You should call this again. */
      readonly more: boolean;
      /** The reason why the part is still being held back. */
      readonly hold: string | undefined;
    }
  /** GONE: of another generation. CLOSED: control data are missing. */
  | { readonly answer: 'GONE' | 'CLOSED' };

/**
 * Continues routing for a part that is held back, or for subscriptions that are behind. Each call processes up to 256
 * events or 64 references (up to 512 if a single event has them). Can be called by several processes. The calls are run
 * one after the other.
 */
export type Advance = (part: Part) => Promise<AdvanceAnswer>;

export function createAdvance(redis: ScriptClient): Advance {
  return async function advance(part) {
    const [answer, events, references, more, hold] = await callScript(redis, ADVANCE, {
      keys: partKeys(part),
      args: { gen: part.gen },
    });
    if (answer !== 'OK') return { answer: answer as 'GONE' };
    return {
      answer,
      events: events as number,
      references: references as number,
      more: more === 1,
      hold: hold === '' ? undefined : (hold as string),
    };
  };
}
