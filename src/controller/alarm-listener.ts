import { parseChangedDelivery, parseDisabledEndpoint } from '../redis/alarm.ts';
import type { World } from './caches/caches.ts';
import type { DeliveryShowing } from './kinds/subscription/delivery-status/delivery-showing.ts';
import type { EndpointHealths } from './kinds/subscription/endpoint-healths.ts';

/** Returns a listener that hands each alarm of another role to the part of the controller that it concerns. */
export function createAlarmListener(deps: {
  readonly world: Pick<World, 'Account'>;
  readonly endpointHealths: Pick<EndpointHealths, 'onDisabled'>;
  readonly showing: Pick<DeliveryShowing, 'onAlarm'>;
  readonly enqueueAccount: (name: string) => void;
  /** A slot without control state. */
  readonly onLost: (slot: string) => void;
}): (slot: string) => void {
  return slot => {
    const disabled = parseDisabledEndpoint(slot);
    if (disabled !== undefined) return deps.endpointHealths.onDisabled(disabled);
    const changed = parseChangedDelivery(slot);
    if (changed !== undefined) return deps.showing.onAlarm(changed);
    if (!slot.startsWith('a:')) return deps.onLost(slot);
    for (const { metadata } of deps.world.Account.store.byIndex('publicId', slot.slice(2))) {
      deps.enqueueAccount(metadata.name);
    }
  };
}
