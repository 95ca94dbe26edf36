import type { InboxRef } from '../../plane/inbox-ref.ts';
import type { RedisClient } from '../../redis/client.ts';
import type { ScriptClient } from '../call.ts';
import { PART_NUMBER, type Part, partKeys, slotOf } from '../keys.ts';

export type PartClient = ScriptClient & Pick<RedisClient, 'call' | 'readHash'>;

/** Stream of a subscription. Undefined if unknown. */
export type FindStream = (inbox: InboxRef) => { readonly tenant: string; readonly queue: string } | undefined;

/** Location of a subscription's events. */
export interface SlotOfPart {
  readonly part: Part;
  readonly slot: string;
}

/** Returns the part of a stream in its current generation, or undefined if Redis has none. A stream has one part. */
export async function readPart(redis: PartClient, tenant: string, queue: string): Promise<Part | undefined> {
  const { meta } = partKeys({ tenant, queue, gen: '', number: PART_NUMBER });
  const gen = await redis.call('hget', meta, 'gen');
  return typeof gen === 'string' ? { tenant, queue, gen, number: PART_NUMBER } : undefined;
}

/** Returns the location of a subscription's events, or undefined if Redis has no part for its stream. */
export type FindSlot = (inbox: InboxRef) => Promise<SlotOfPart | undefined>;

export function createFindSlot(redis: PartClient, findStream: FindStream): FindSlot {
  return async function findSlot(inbox) {
    const stream = findStream(inbox);
    const part = stream && (await readPart(redis, stream.tenant, stream.queue));
    return part && { part, slot: slotOf(inbox.sub, inbox.inc) };
  };
}
