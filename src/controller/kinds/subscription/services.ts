import type { BacklogStore } from '../../../plane/backlog.ts';
import type { ReadDeliveries } from '../../../plane/delivery-reader.ts';
import type { ControlStore } from '../../../record/control-store.ts';
import type { Logger } from '../../../telemetry/log.ts';
import type { Registry } from '../../../telemetry/metrics.ts';
import type { Clock } from '../../../time/clock.ts';
import type { Caches } from '../../caches/caches.ts';
import type { Controllers } from '../../engine/controllers.ts';
import type { EventRecorder } from '../../engine/event-recorder.ts';
import type { Tenants } from '../../routes/tenants.ts';
import { createBacklogWatch } from './backlog-watch.ts';
import { createDeliveryShowing } from './delivery-status/delivery-showing.ts';
import { createEndpointHealths, keysConcerned } from './endpoint-healths.ts';

/**
 * Creates the services that read information about subscriptions from the data plane. Includes backlogs, endpoints, and
 * deliveries.
 */
export function createSubscriptionServices(deps: {
  readonly caches: Caches;
  readonly tenants: Tenants;
  readonly controllers: Pick<Controllers, 'enqueue'>;
  readonly control: Pick<ControlStore, 'readHealth'>;
  readonly backlogs: BacklogStore;
  readonly readDeliveries: ReadDeliveries;
  readonly events: Pick<EventRecorder, 'record'>;
  readonly nowMs: () => number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly registry: Registry;
}) {
  const { caches, tenants } = deps;
  const write = (key: string) => deps.controllers.enqueue('subscription', key, 'background');
  const backlogWatch = createBacklogWatch({
    ...deps,
    store: deps.backlogs,
    tenants: tenants.names,
    compiled: name => (tenants.isSynced(name) ? tenants.compiled(name) : undefined),
    subscriptionsOf: name => caches.Subscription.store.byIndex('producer', name),
    onFlip: write,
  });
  const endpointHealths = createEndpointHealths({
    read: deps.control.readHealth,
    onNews: (sub, first) => {
      for (const key of keysConcerned(caches, sub, first)) write(key);
    },
    log: deps.log,
  });
  const showing = createDeliveryShowing({ ...deps, write });
  return {
    backlogWatch,
    endpointHealths,
    showing,
    /** Starts a new term, ending when `over` is aborted. */
    begin(over: AbortSignal): void {
      endpointHealths.forget();
      backlogWatch.begin(over);
      showing.begin(over);
    },
    /** Drops the state of all subscriptions which no longer exist. */
    prune(): void {
      endpointHealths.prune(sub => caches.Subscription.store.byIndex('publicId', sub).length > 0);
      showing.prune();
    },
  };
}

export type SubscriptionServices = ReturnType<typeof createSubscriptionServices>;
