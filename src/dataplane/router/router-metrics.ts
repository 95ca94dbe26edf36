import { Counter, type Registry } from '../../telemetry/metrics.ts';
import { createPlainHistogram } from '../../telemetry/plain-histogram.ts';

/** What the router counts. */
export function createRouterMetrics(registry: Registry) {
  const registers = [registry];
  const held = new Counter({
    name: 'sluice_router_held_total',
    help: 'Number of batches that could not be accepted by a subscription, which will fall behind and catch up later.',
    labelNames: ['cause'] as const,
    registers,
  });
  const waits = new Counter({
    name: 'sluice_router_token_waits_total',
    help: 'Number of batches that had to wait for tokens, by cause: spent, reserved by other queues, or account unknown.',
    labelNames: ['cause'] as const,
    registers,
  });
  for (const cause of ['paused', 'unreachable']) held.inc({ cause }, 0);
  for (const cause of ['spent', 'reserved', 'unknown']) waits.inc({ cause }, 0);
  return {
    batches: new Counter({
      name: 'sluice_router_batches_total',
      help: 'Number of event batches routed.',
      registers,
    }),
    events: new Counter({
      name: 'sluice_router_events_total',
      help: 'Number of events processed by the main pass.',
      registers,
    }),
    routed: new Counter({
      name: 'sluice_router_routed_total',
      help: 'Number of references added to inboxes.',
      registers,
    }),
    notRouted: new Counter({
      name: 'sluice_router_not_routed_total',
      help: 'Number of events missed by subscribed integrations, by reason. For missing_group_key, each event is only counted once.',
      labelNames: ['reason'] as const,
      registers,
    }),
    held,
    tokens: new Counter({
      name: 'sluice_router_tokens_total',
      help: 'Number of tokens for references added to inboxes.',
      registers,
    }),
    waits,
    failures: new Counter({
      name: 'sluice_router_failures_total',
      help: 'Number of times work on a queue failed and had to be retried, e.g. due to Redis being unavailable.',
      registers,
    }),
    lag: createPlainHistogram({
      name: 'sluice_router_lag_seconds',
      help: 'Age of the oldest event per batch in seconds at the time of routing, measured from when it was accepted by ingress. Excludes events routed after a pause.',
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3_600],
      registers,
    }),
  };
}
