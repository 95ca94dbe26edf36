import { type InboxRef, parseInboxMember } from '../../plane/inbox-ref.ts';
import { tenantKeys } from '../../redis/keys.ts';
import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';
import { parseRow, type SubscriptionRow } from '../gate/subscription-row.ts';
import type { PartClient, SlotOfPart } from '../inbox/find-part.ts';
import { type Part, partKeys } from '../keys.ts';

const FATE = readNamedScript(new URL('fate.lua', import.meta.url));
const FORMER = readNamedScript(new URL('former.lua', import.meta.url));

/** The data that is used to decide if the events of a group key are sent to a slot. */
export interface Fate {
  /** False if control data is missing. In this case, the other fields are not reliable. */
  readonly isWhole: boolean;
  readonly row: SubscriptionRow | undefined;
  /** The position up to which events were routed. If the subscription is not behind, this is undefined. */
  readonly position: string | undefined;
  /** First ref at which the group key is active. If it is not active, this is undefined. */
  readonly since: string | undefined;
}

const LOST: Fate = { isWhole: false, row: undefined, position: undefined, since: undefined };

export async function readFate(redis: ScriptClient, { part, slot }: SlotOfPart, groupKey: string): Promise<Fate> {
  const call = { keys: partKeys(part), args: { gen: part.gen, slot, groupKey } };
  const [word, isWhole, row, position, since] = await callScript(redis, FATE, call);
  if (word !== 'OK') return LOST;
  return {
    isWhole: isWhole === 1,
    row: row === '' ? undefined : parseRow(row as string),
    position: position === '' ? undefined : (position as string),
    since: since === '' ? undefined : (since as string),
  };
}

/** The inboxes of deleted subscriptions that an event was routed to. */
export async function readFormer(redis: ScriptClient, part: Part, ref: string): Promise<InboxRef[]> {
  const [word, ...members] = await callScript(redis, FORMER, { keys: partKeys(part), args: { gen: part.gen, ref } });
  return word === 'OK' ? members.map(member => parseInboxMember(member as string)) : [];
}

/**
 * The integration's subscription to the stream, according to the tenant's state. If there is none, this is undefined.
 */
export async function readSubscriber(
  redis: PartClient,
  tenant: string,
  queue: string,
  integration: string,
): Promise<{ readonly sub: string; readonly inc: string } | undefined> {
  const member = await redis.call('hget', tenantKeys(tenant).subs(queue), integration);
  return typeof member === 'string' ? parseInboxMember(`${integration}/${member}`) : undefined;
}

/** Returns true if the tenant state is in Redis. */
export async function isTenantReady(redis: PartClient, tenant: string): Promise<boolean> {
  return (await redis.call('hget', tenantKeys(tenant).meta, 'ready')) === '1';
}
