import { parseChangedDelivery, parseDisabledEndpoint } from '../record/alarm.ts';
import type { Caches } from './caches/caches.ts';
import type { Controllers } from './engine/controllers.ts';
import type { SubscriptionServices } from './kinds/subscription/services.ts';

/** Returns a listener that forwards the alarms of other roles to the responsible component. */
export function createAlarmListener(deps: {
  readonly caches: Pick<Caches, 'Account'>;
  readonly controllers: Pick<Controllers, 'enqueue'>;
  readonly subscriptions: Pick<SubscriptionServices, 'endpointHealths' | 'showing'>;
  /** Called with the name of the data whose control state is missing. */
  readonly onLost: (slot: string) => void;
}): (slot: string) => void {
  return slot => {
    const disabled = parseDisabledEndpoint(slot);
    if (disabled !== undefined) return deps.subscriptions.endpointHealths.onDisabled(disabled);
    const changed = parseChangedDelivery(slot);
    if (changed !== undefined) return deps.subscriptions.showing.onAlarm(changed);
    if (!slot.startsWith('a:')) return deps.onLost(slot);
    for (const { metadata } of deps.caches.Account.store.byIndex('publicId', slot.slice(2))) {
      deps.controllers.enqueue('account', metadata.name, 'background');
    }
  };
}
