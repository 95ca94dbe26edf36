import { CONDITION, REASON } from '../../../api/condition-reasons.ts';
import { Gauge, type Registry } from '../../../telemetry/metrics.ts';
import { type Condition, findCondition } from '../../engine/conditions.ts';

/** The reasons why events are not routed or not delivered to a subscription. */
const NOT_LIVE = Object.values(REASON.Subscription.Live).filter(reason => reason !== 'Live');

/** Registers a metric for the number of subscriptions that are not live. */
export function registerLiveMetrics(
  registry: Registry,
  subscriptions: () => Iterable<{
    readonly status?: { readonly conditions?: readonly Condition[] | undefined } | undefined;
  }>,
): void {
  new Gauge({
    name: 'sluice_controller_subscriptions_not_live',
    help: 'The number of subscriptions with Live=False, by reason. All replicas report the same value. To aggregate, use the maximum.',
    labelNames: ['reason'] as const,
    registers: [registry],
    collect() {
      const counts = new Map<string, number>(NOT_LIVE.map(reason => [reason, 0]));
      for (const { status } of subscriptions()) {
        const live = findCondition(status?.conditions, CONDITION.Subscription.Live);
        const count = counts.get(live?.reason ?? '');
        if (live?.status === 'False' && count !== undefined) counts.set(live.reason, count + 1);
      }
      for (const [reason, count] of counts) this.set({ reason }, count);
    },
  });
}
