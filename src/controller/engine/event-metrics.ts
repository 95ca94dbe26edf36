import { createLabeledCounter, type Registry } from '../../telemetry/metrics.ts';

/** The reason why an Event was dropped. */
const DROPPED = ['object_limit', 'workspace_limit', 'process_limit', 'queue_full', 'rejected'] as const;
export type DroppedEvent = (typeof DROPPED)[number];

export type EventMetrics = { readonly dropped: (reason: DroppedEvent) => void };

export function createEventMetrics(registry: Registry): EventMetrics {
  const dropped = createLabeledCounter(registry, {
    name: 'sluice_controller_events_dropped_total',
    help: 'The number of Kubernetes Events that were not recorded, by reason: object_limit (too many for one object), workspace_limit (too many for the objects of one workspace), process_limit (too many for all objects), queue_full (too many waiting to be sent), or rejected (the API server refused the Event or did not answer).',
    label: 'reason',
    known: DROPPED,
  });
  return { dropped };
}
