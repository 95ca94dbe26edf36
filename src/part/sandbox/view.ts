import { parseEndpointHealth } from '../../core/delivery/endpoint-health.ts';
import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';
import type { SubscriptionRow } from '../gate/subscription-row.ts';
import { type Part, partKeys } from '../keys.ts';
import { healthText } from '../state/health-text.ts';

const VIEW = readNamedScript(new URL('view.lua', import.meta.url));
/** The maximum number of group keys and slots in each call. */
const [GROUP_KEYS, SLOTS] = [256, 500];
export const SLOT_CHARS = 8;

/** Routing state of a part for some group keys and slots. */
export interface GateView {
  /** The slots for which each of the group keys is active. */
  readonly active: ReadonlyMap<string, ReadonlySet<string>>;
  /** For these slots and the requested ones. */
  readonly slots: ReadonlyMap<string, SlotView>;
}

/**
 * Texts of a row and of the health of its endpoint (both may be empty), a flag for an endpoint, and the end of the last
 * skipped pause, or ''.
 */
export interface SlotView {
  readonly row: string;
  readonly health: string;
  readonly hasEndpoint: boolean;
  readonly skipped: string;
}

export const NO_VIEW: GateView = { active: new Map(), slots: new Map() };

function slotsOf(text: string): Set<string> {
  const slots = new Set<string>();
  for (let at = 0; at < text.length; at += SLOT_CHARS) slots.add(text.slice(at, at + SLOT_CHARS));
  return slots;
}

/**
 * Reads the part state. The result is a snapshot unless it requires several calls. If the part does not exist, or its
 * control data is missing, this returns undefined, because the state can't be used in this case.
 */
export async function readView(
  redis: ScriptClient,
  part: Part,
  groupKeys: readonly string[],
  slots: Iterable<string>,
): Promise<GateView | undefined> {
  const active = new Map<string, ReadonlySet<string>>();
  const rows = new Map<string, SlotView>();
  const open = new Set(slots);
  do {
    const keys = groupKeys.slice(active.size, active.size + GROUP_KEYS);
    const [word, isWhole, count, ...rest] = await callScript(redis, VIEW, {
      keys: partKeys(part),
      args: { gen: part.gen, count: keys.length },
      more: [...keys, ...[...open].slice(0, SLOTS)],
    });
    if (word !== 'OK' || isWhole !== 1) return undefined;
    for (const [i, list] of rest.slice(0, count as number).entries()) {
      const found = slotsOf(list as string);
      active.set(keys[i] as string, found);
      for (const slot of found) if (!rows.has(slot)) open.add(slot);
    }
    for (let at = count as number; at < rest.length; at += 5) {
      const [slot, row, health, endpoint, skipped] = rest.slice(at, at + 5) as [string, string, string, number, string];
      rows.set(slot, { row, health, hasEndpoint: endpoint === 1, skipped });
      open.delete(slot);
    }
  } while (active.size < groupKeys.length || open.size > 0);
  return { active, slots: rows };
}

/** Returns true if the slot endpoint has been disabled, and was not re-enabled. */
export function isDisabled(health: string, { enabledMs = 0 }: Pick<SubscriptionRow, 'enabledMs'> = {}): boolean {
  const disabled = parseEndpointHealth(healthText(health))?.disabled;
  // If the endpoint was enabled later, `claims/health.lua` removes the entry with the next claim.
  return disabled !== undefined && enabledMs <= disabled.ms;
}
