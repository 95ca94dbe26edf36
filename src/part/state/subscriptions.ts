import type { ReadDeliveries } from '../../plane/delivery-reader.ts';
import type { ControlStore } from '../../record/control-store.ts';
import type { FindStream, PartClient } from '../inbox/find-part.ts';
import { createReadSlots } from './slots.ts';
import { readByStream } from './streams.ts';

/** Used by the controller to read the subscriptions in parts. */
export interface SubscriptionStates {
  readonly readDeliveries: ReadDeliveries;
  readonly readHealth: ControlStore['readHealth'];
}

export function createSubscriptionStates(redis: PartClient, findStream: FindStream): SubscriptionStates {
  const readSlots = createReadSlots(redis);
  return {
    async readDeliveries(inboxes) {
      const states = await readByStream(redis, findStream, inboxes, readSlots);
      return states.map(state => state?.deliveries);
    },
    async readHealth(inbox) {
      const [state] = await readByStream(redis, findStream, [inbox], readSlots);
      return state?.health;
    },
  };
}
