import type { SubscriptionStatus } from '../../../../api/kinds/subscription.ts';
import { LONGEST_RETENTION_MS, retentionMsOf } from '../../../../core/routing/retention.ts';
import { resourceOf } from '../../../../kube/resource.ts';
import type { ReadDeliveries } from '../../../../plane/delivery-reader.ts';
import type { Logger } from '../../../../telemetry/log.ts';
import type { Registry } from '../../../../telemetry/metrics.ts';
import type { Clock } from '../../../../time/clock.ts';
import type { Cached, Caches } from '../../../caches/caches.ts';
import type { EventRecorder } from '../../../engine/event-recorder.ts';
import type { Attempt } from '../../../engine/keyed-controller.ts';
import type { Outcome } from '../../../engine/outcome.ts';
import { withConsent } from './consent-condition.ts';
import { createDeliveryMetrics } from './delivery-metrics.ts';
import { createDeliveryWatch } from './delivery-watch.ts';
import { createDeliveryWriter } from './writer.ts';

type Reconcile = (subscription: Cached<'Subscription'>, attempt: Attempt) => Promise<Outcome<SubscriptionStatus>>;

/** Creates the components responsible for adding the delivery state to Subscription statuses. */
export function createDeliveryShowing(deps: {
  readonly caches: Pick<Caches, 'Subscription' | 'CatalogStream'>;
  readonly readDeliveries: ReadDeliveries;
  /** Enqueues a Subscription so that its status is written again. */
  readonly write: (key: string) => void;
  readonly events: Pick<EventRecorder, 'record'>;
  /** Current time in milliseconds, according to the Redis clock. */
  readonly nowMs: () => number;
  readonly clock: Pick<Clock, 'nowMs' | 'setTimer'>;
  readonly registry: Registry;
  readonly log: Pick<Logger, 'debug'>;
}) {
  const { Subscription, CatalogStream } = deps.caches;
  const writer = createDeliveryWriter({
    write: key => {
      metrics.wrote();
      deps.write(key);
    },
    clock: deps.clock,
  });
  const metrics = createDeliveryMetrics(deps.registry, writer.waiting);
  const streamOf = ({ spec }: Cached<'Subscription'>) => CatalogStream.store.get(`${spec.producer}/${spec.stream}`);
  const watch = createDeliveryWatch({
    read: deps.readDeliveries,
    subscriptionsOf: sub => Subscription.store.byIndex('publicId', sub),
    hasStream: subscription => streamOf(subscription) !== undefined,
    retentionMsOf: subscription => {
      const retention = streamOf(subscription)?.spec.retention;
      return retention === undefined ? LONGEST_RETENTION_MS : retentionMsOf(retention);
    },
    writer,
    record: ({ metadata }, note) => deps.events.record({ resource: resourceOf('Subscription'), metadata }, note),
    nowMs: deps.nowMs,
    clock: deps.clock,
    log: deps.log,
  });
  return {
    onAlarm: watch.onAlarm,
    noteAll: watch.noteAll,
    begin: watch.begin,
    /** Drops the state of all Subscriptions which no longer exist. */
    prune: () =>
      watch.prune({
        key: key => Subscription.store.get(key) !== undefined,
        sub: sub => Subscription.store.byIndex('publicId', sub).length > 0,
      }),
    /** Wraps `reconcile` to also set status.delivery even if the producer's workspace is paused. */
    show(reconcile: Reconcile): Reconcile {
      return async (subscription, attempt) => {
        const outcome = await reconcile(subscription, attempt);
        const delivery = watch.statusOf(subscription);
        const conditions = withConsent(outcome.conditions, subscription, delivery);
        return { ...outcome, conditions, status: { ...outcome.status, delivery } };
      };
    },
  };
}
