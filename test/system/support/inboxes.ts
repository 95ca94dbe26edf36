import type { Replays } from '../../../src/accounts/replays.ts';
import { publicId } from '../../../src/core/ids/ids.ts';
import { createPartInboxReader } from '../../../src/part/inbox/inbox-reader.ts';
import { createFindRecordedSlot } from '../../../src/part/inbox/recorded-slot.ts';
import { createPartInboxOperations } from '../../../src/part/owner/operations.ts';
import { createPartReplayInboxes } from '../../../src/part/owner/replays.ts';
import type { InboxOperations } from '../../../src/plane/inbox-operations.ts';
import type { InboxReader } from '../../../src/plane/inbox-reader.ts';
import type { InboxRef } from '../../../src/plane/inbox-ref.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { integrationKeys } from '../../../src/redis/keys.ts';
import { openReplays } from '../../../src/roles/replays.ts';
import { PRODUCER, SUBSCRIPTION } from './small-world.ts';

/** Returns the inboxes of partners, as seen by the facade. */
export interface Inboxes {
  readonly reader: InboxReader;
  readonly operations: InboxOperations;
  /** @param of connection and clock of the process that starts replays */
  readonly replays: (of?: { readonly redis: RedisClient; readonly nowMs: () => number }) => Replays;
}

export function openInboxes(redis: RedisClient, nowMs: () => number): Inboxes {
  const findSlot = createFindRecordedSlot(redis);
  return {
    reader: createPartInboxReader(redis, findSlot),
    operations: createPartInboxOperations(redis, findSlot),
    replays: (of = { redis, nowMs }) => openReplays(of.redis, of.nowMs, createPartReplayInboxes(of.redis, findSlot)),
  };
}

/** Returns the inbox of a partner of the small world. */
export async function inboxOfPartner(redis: RedisClient, partner: string): Promise<InboxRef> {
  const integration = publicId('Integration', PRODUCER, partner);
  const sub = publicId('Subscription', partner, SUBSCRIPTION);
  const { inc = '' } = await redis.readHash(integrationKeys(integration).sub(sub));
  return { integration, sub, inc };
}
