import { Counter, type Registry } from '../../telemetry/metrics.ts';
import { createPlainHistogram } from '../../telemetry/plain-histogram.ts';

/** What the router counts. */
export function createRouterMetrics(registry: Registry) {
  const registers = [registry];
  const held = new Counter({
    name: 'sluice_router_held_total',
    help: 'Batches that a subscription could not take its part of: it stays behind and is caught up.',
    labelNames: ['cause'] as const,
    registers,
  });
  const waits = new Counter({
    name: 'sluice_router_token_waits_total',
    help: 'Batches that waited for tokens, by cause: spent, reserved by other queues, or account unknown.',
    labelNames: ['cause'] as const,
    registers,
  });
  for (const cause of ['paused', 'unreachable']) held.inc({ cause }, 0);
  for (const cause of ['spent', 'reserved', 'unknown']) waits.inc({ cause }, 0);
  return {
    batches: new Counter({
      name: 'sluice_router_batches_total',
      help: 'Batches of events that were routed.',
      registers,
    }),
    events: new Counter({
      name: 'sluice_router_events_total',
      help: 'Events that the main pass went through.',
      registers,
    }),
    routed: new Counter({ name: 'sluice_router_routed_total', help: 'References appended to inboxes.', registers }),
    notRouted: new Counter({
      name: 'sluice_router_not_routed_total',
      help: 'Subscribed integrations that did not get an event, by reason; missing_group_key counts events.',
      labelNames: ['reason'] as const,
      registers,
    }),
    held,
    tokens: new Counter({
      name: 'sluice_router_tokens_total',
      help: 'Tokens of the references appended to inboxes.',
      registers,
    }),
    waits,
    failures: new Counter({
      name: 'sluice_router_failures_total',
      help: 'Turns of work on a queue that failed and were begun again, as while Redis is away.',
      registers,
    }),
    lag: createPlainHistogram({
      name: 'sluice_router_lag_seconds',
      help: 'Age of the oldest event of each batch when it was routed, since ingress accepted it. Catching up after a pause is left out.',
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3_600],
      registers,
    }),
  };
}
