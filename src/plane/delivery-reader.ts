import type { DeliveryFields } from '../core/delivery/delivery-state.ts';
import type { InboxRef } from './inbox-ref.ts';

/**
 * Reads the state of deliveries for each subscription, in the same order as `inboxes`. If the generation is different,
 * the state is undefined.
 */
export type ReadDeliveries = (inboxes: readonly InboxRef[]) => Promise<(DeliveryFields | undefined)[]>;
