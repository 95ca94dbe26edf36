import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';
import { parseRow, type SubscriptionRow } from '../gate/subscription-row.ts';
import type { SlotOfPart } from '../inbox/find-part.ts';
import { partKeys } from '../keys.ts';

const SNAPSHOT = readNamedScript(new URL('snapshot.lua', import.meta.url));
/** Group keys of one call at most. The script takes fewer of those that thousands of subscriptions have. */
const GROUP_KEYS = 256;

/** What a part says of a slot. */
export interface SlotSnapshot {
  readonly row: SubscriptionRow | undefined;
  /** As `parseSlotEndpoint` reads it; empty without an endpoint. */
  readonly endpoint: string;
  /** As `claims/health.lua` writes it; empty for an endpoint that works. */
  readonly health: string;
  /** Ref since which each group key is active, of those that are. */
  readonly activeSince: ReadonlyMap<string, string>;
}

/** Reads a slot. Returns undefined where control data are missing: nothing of it is to be believed then. */
export async function readSnapshot(
  redis: ScriptClient,
  { part, slot }: SlotOfPart,
  groupKeys: readonly string[],
): Promise<SlotSnapshot | undefined> {
  const activeSince = new Map<string, string>();
  for (let at = 0; ; ) {
    const [word, isWhole, row, endpoint, health, ...since] = await callScript(redis, SNAPSHOT, {
      keys: partKeys(part),
      args: { gen: part.gen, slot },
      more: groupKeys.slice(at, at + GROUP_KEYS),
    });
    if (word !== 'OK' || isWhole !== 1) return undefined;
    for (const [i, ref] of since.entries()) if (ref !== '') activeSince.set(groupKeys[at + i] as string, ref as string);
    at += since.length;
    if (at < groupKeys.length) continue;
    return { row: parseRow(row as string), endpoint: endpoint as string, health: health as string, activeSince };
  }
}
