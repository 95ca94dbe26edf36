import type { ControlStore } from '../../redis/control-store.ts';
import type { ReadDeliveries } from '../../redis/delivery-reader.ts';
import type { InboxRef } from '../../redis/inbox-store.ts';
import { type FindStream, type PartClient, readPart } from '../inbox/find-part.ts';
import { slotOf } from '../keys.ts';
import { createReadSlots, type ReadSlots } from './slots.ts';

/** What the controller reads of subscriptions in parts. */
export interface SubscriptionStates {
  readonly readDeliveries: ReadDeliveries;
  readonly readHealth: ControlStore['readHealth'];
}

/** Reads the states of inboxes, each stream's together; in the order of `inboxes`. */
async function readStates(
  redis: PartClient,
  readSlots: ReadSlots,
  findStream: FindStream,
  inboxes: readonly InboxRef[],
) {
  const found = new Map<InboxRef, Awaited<ReturnType<ReadSlots>>[number]>();
  const streamOf = (inbox: InboxRef) => {
    const stream = findStream(inbox);
    return stream === undefined ? undefined : `${stream.tenant} ${stream.queue}`;
  };
  for (const [stream, some] of Map.groupBy(inboxes, streamOf)) {
    const [tenant, queue] = stream?.split(' ') ?? [];
    if (tenant === undefined || queue === undefined) continue;
    const part = await readPart(redis, tenant, queue);
    if (part === undefined) continue;
    const slots = some.map(({ sub, inc }) => slotOf(sub, inc));
    const states = await readSlots(part, slots);
    for (const [i, inbox] of some.entries()) found.set(inbox, states[i]);
  }
  return inboxes.map(inbox => found.get(inbox));
}

export function createSubscriptionStates(redis: PartClient, findStream: FindStream): SubscriptionStates {
  const readSlots = createReadSlots(redis);
  return {
    async readDeliveries(inboxes) {
      const states = await readStates(redis, readSlots, findStream, inboxes);
      return states.map(state => state?.deliveries);
    },
    async readHealth(inbox) {
      const [state] = await readStates(redis, readSlots, findStream, [inbox]);
      return state?.health;
    },
  };
}
