import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';
import { type Part, partKeys } from '../keys.ts';

const OLDEST = readNamedScript(new URL('oldest.lua', import.meta.url));
/** Subscriptions of one call, and references that are looked at of each: a call takes a few milliseconds at most. */
const [SLOTS, REFERENCES] = [8, 200];
/** Subscriptions of one call that looks at the log alone. */
const SLOTS_OF_LOG = 250;

/** How far a subscription is known to be settled: '' at first, then as the last look answered. */
export interface SlotLook {
  readonly slot: string;
  readonly settledTo: string;
}

export interface OldestOfSlot {
  /** When the oldest event was accepted that was not routed to it yet, ms; undefined where it is behind nothing. */
  readonly unroutedMs: number | undefined;
  /** When the oldest event was accepted that waits in its lanes or is under way, ms. */
  readonly openMs: number | undefined;
  /** False: nothing older than `openMs` is open, and a further look from `settledTo` on may find out more. */
  readonly exact: boolean;
  readonly settledTo: string;
}

/**
 * Reads the oldest events that wait for subscriptions of a part. None of a part that is gone.
 *
 * @param of log: nothing is said of what is open
 */
export type ReadOldestOfSlots = (
  part: Part,
  slots: readonly SlotLook[],
  of?: 'log',
) => Promise<readonly OldestOfSlot[]>;

const msOf = (text: unknown) => (text === '' ? undefined : Number(text));

export function createReadOldestOfSlots(redis: ScriptClient): ReadOldestOfSlots {
  return async function readOldestOfSlots(part, slots, of) {
    const found: OldestOfSlot[] = [];
    const most = of === 'log' ? SLOTS_OF_LOG : SLOTS;
    for (let at = 0; at < slots.length; at += most) {
      const more = slots.slice(at, at + most).flatMap(({ slot, settledTo }) => [slot, settledTo]);
      const args = { gen: part.gen, limit: of === 'log' ? 0 : REFERENCES };
      const [word, ...rest] = await callScript(redis, OLDEST, { keys: partKeys(part), args, more });
      if (word !== 'OK') return [];
      for (let i = 0; i < rest.length; i += 4) {
        const [unrouted, open, exact, settledTo] = rest.slice(i, i + 4);
        found.push({
          unroutedMs: msOf(unrouted),
          openMs: msOf(open),
          exact: exact === 1,
          settledTo: settledTo as string,
        });
      }
    }
    return found;
  };
}
