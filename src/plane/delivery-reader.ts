import type { DeliveryFields } from '../core/delivery/delivery-state.ts';
import type { InboxRef } from './inbox-ref.ts';

/**
 * Reads the delivery state of each subscription, in the same order as `inboxes`. The state is undefined if the
 * generation is different.
 */
export type ReadDeliveries = (inboxes: readonly InboxRef[]) => Promise<(DeliveryFields | undefined)[]>;
