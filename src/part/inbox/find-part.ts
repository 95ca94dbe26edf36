import type { InboxRef } from '../../plane/inbox-ref.ts';
import type { RedisClient } from '../../redis/client.ts';
import type { ScriptClient } from '../call.ts';
import { PART_NUMBER, type Part, partKeys, slotOf } from '../keys.ts';

export type PartClient = ScriptClient & Pick<RedisClient, 'call' | 'readHash'>;

/** A subscription's stream. If it is not known, this is undefined. */
export type FindStream = (inbox: InboxRef) => { readonly tenant: string; readonly queue: string } | undefined;

/** The location of a subscription's events. */
export interface SlotOfPart {
  readonly part: Part;
  readonly slot: string;
}

/**
 * Returns the part of a stream for its current generation. If it is not in Redis, this returns undefined. Each stream
 * has a single part.
 */
export async function readPart(redis: PartClient, tenant: string, queue: string): Promise<Part | undefined> {
  const { meta } = partKeys({ tenant, queue, gen: '', number: PART_NUMBER });
  const gen = await redis.call('hget', meta, 'gen');
  return typeof gen === 'string' ? { tenant, queue, gen, number: PART_NUMBER } : undefined;
}

/**
 * Returns the location of a subscription's events. If there is no part for its stream in Redis, this returns
 * undefined.
 */
export type FindSlot = (inbox: InboxRef) => Promise<SlotOfPart | undefined>;

export function createFindSlot(redis: PartClient, findStream: FindStream): FindSlot {
  return async function findSlot(inbox) {
    const stream = findStream(inbox);
    const part = stream && (await readPart(redis, stream.tenant, stream.queue));
    return part && { part, slot: slotOf(inbox.sub, inbox.inc) };
  };
}
