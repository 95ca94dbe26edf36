import type { DeliveryFields } from '../core/delivery/delivery-state.ts';
import type { InboxRef } from './inbox-ref.ts';

/** Reads how deliveries go, subscription by subscription; in the order of `inboxes`. Undefined: another generation. */
export type ReadDeliveries = (inboxes: readonly InboxRef[]) => Promise<(DeliveryFields | undefined)[]>;
