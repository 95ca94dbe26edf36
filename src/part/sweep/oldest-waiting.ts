import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';
import { type Part, partKeys } from '../keys.ts';

const OLDEST = readNamedScript(new URL('oldest.lua', import.meta.url));
/**
 * The number of subscriptions in each call, and the number of references that are read for each of them, so that a call
 * only takes a few milliseconds.
 */
const [SLOTS, REFERENCES] = [8, 200];
/** The number of subscriptions in a call that only reads the log. */
const SLOTS_OF_LOG = 250;

/** The position up to which a subscription is settled. Initially '', then the value returned by the last call. */
export interface SlotLook {
  readonly slot: string;
  readonly settledTo: string;
}

export interface OldestOfSlot {
  /**
   * The time at which the oldest event that has not been routed yet was accepted, in milliseconds. If the subscription
   * is not behind, this is undefined.
   */
  readonly unroutedMs: number | undefined;
  /** The time at which the oldest event that is waiting or in progress was accepted, in milliseconds. */
  readonly openMs: number | undefined;
  /**
   * False if there are no open events that are older than `openMs`. Another call that starts at `settledTo` might find
   * more of them.
   */
  readonly exact: boolean;
  readonly settledTo: string;
}

/**
 * Reads the oldest waiting event for each subscription of a part. Empty for a removed part.
 *
 * @param of log: leaves out open events
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
