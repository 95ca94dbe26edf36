import type { Permission } from '../../plane/inbox-reader.ts';
import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';
import { partKeys } from '../keys.ts';
import type { SlotOfPart } from './find-part.ts';

const PERMIT = readNamedScript(new URL('permit.lua', import.meta.url));

/**
 * The reason why a subscription is not able to receive events. If there is no such subscription in the part, this is
 * GONE.
 */
export type Refused = Extract<Permission, 'CLOSED' | 'GONE' | 'PAUSED'>;

/**
 * Returns the permissions of a subscription for events with these group keys: a single answer for all of them, or one
 * for each.
 */
export async function readPermissions(
  redis: ScriptClient,
  { part, slot }: SlotOfPart,
  groupKeys: readonly string[],
): Promise<Refused | readonly ('OPEN' | 'INACTIVE')[]> {
  const call = { keys: partKeys(part), args: { gen: part.gen, slot }, more: groupKeys };
  const [word, ...since] = await callScript(redis, PERMIT, call);
  if (word !== 'OK') return word as Refused;
  return since.map(ref => (ref === '' ? 'INACTIVE' : 'OPEN'));
}
