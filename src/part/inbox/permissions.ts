import type { Permission } from '../../plane/inbox-reader.ts';
import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';
import { partKeys } from '../keys.ts';
import type { SlotOfPart } from './find-part.ts';

const PERMIT = readNamedScript(new URL('permit.lua', import.meta.url));

/** Reason why a subscription can't receive events. GONE if the part has no such subscription. */
export type Refused = Extract<Permission, 'CLOSED' | 'GONE' | 'PAUSED'>;

/** Whether events of these group keys may be given to a subscription now; one answer for all, or one for each. */
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
