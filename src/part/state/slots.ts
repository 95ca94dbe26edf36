import type { DeliveryFields } from '../../core/delivery/delivery-state.ts';
import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';
import { parseSlotNote } from '../claims/delivery-note.ts';
import { inboxRefOf } from '../inbox/ref-names.ts';
import { type Part, partKeys } from '../keys.ts';
import { healthText } from './health-text.ts';

const SLOTS = readNamedScript(new URL('slots.lua', import.meta.url));
const SLOTS_AT_ONCE = 500;

/** The data of a subscription that a part keeps for its status. */
export interface SlotState {
  readonly deliveries: DeliveryFields;
  /** Undefined if the endpoint is working. */
  readonly health: string | undefined;
}

/** Reads slots. If a slot does not have a row, or if the part was removed, the result is undefined. */
export type ReadSlots = (part: Part, slots: readonly string[]) => Promise<readonly (SlotState | undefined)[]>;

export function createReadSlots(redis: ScriptClient): ReadSlots {
  return async function readSlots(part, slots) {
    const states: (SlotState | undefined)[] = [];
    for (let at = 0; at < slots.length; at += SLOTS_AT_ONCE) {
      const asked = slots.slice(at, at + SLOTS_AT_ONCE);
      const call = { keys: partKeys(part), args: { gen: part.gen }, more: asked };
      const [word, ...texts] = (await callScript(redis, SLOTS, call)) as readonly string[];
      for (let i = 0; i < asked.length; i++) {
        const [counts = '-', dead = '', health = ''] = word === 'OK' ? texts.slice(3 * i, 3 * i + 3) : [];
        states.push(
          counts === '-' ? undefined : { deliveries: deliveryFields(counts, dead), health: healthText(health) },
        );
      }
    }
    return states;
  };
}

/**
 * Test events are not counted. The number of waiting events is taken from the counters, even if it has not been
 * recorded by an exchange yet.
 */
function deliveryFields(counts: string, dead: string): DeliveryFields {
  if (counts === '') return {};
  const [flight = 0, routed = 0, , ...ends] = counts.split(' ', 8).map(Number);
  const [delivered = 0, deadOnes = 0, expired = 0, skipped = 0, replayed = 0] = ends;
  const note = counts.split(' ')[8];
  const waiting = routed + replayed - delivered - deadOnes - expired - skipped - flight;
  const { outcome, sinceMs } = note === undefined ? { outcome: undefined, sinceMs: 0 } : parseSlotNote(note);
  const digits = waiting > 0 ? String(waiting).length : 0;
  return {
    delivery: `${outcome ?? '-'} ${sinceMs} ${deadOnes > 0 ? 1 : 0} ${digits}`,
    ...(dead === '' ? {} : { dead: deadText(dead) }),
    'n:routed': String(routed),
    'n:replayed': String(replayed),
    'n:delivered': String(delivered),
    'n:dead': String(deadOnes),
    'n:skipped': String(skipped),
    'n:expired': String(expired),
  };
}

function deadText(text: string): string {
  const [ms, first = '', youngest = ''] = text.split(' ');
  return `${ms} ${inboxRefOf(first)} ${inboxRefOf(youngest)}`;
}
