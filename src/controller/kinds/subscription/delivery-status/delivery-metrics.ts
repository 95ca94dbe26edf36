import { Counter, type Registry, registerGauge } from '../../../../telemetry/metrics.ts';

export interface DeliveryMetrics {
  readonly wrote: () => void;
}

/**
 * Creates the metrics for deliveries.
 * @param waiting returns the number of Subscriptions waiting for a status update
 */
export function createDeliveryMetrics(registry: Registry, waiting: () => number): DeliveryMetrics {
  registerGauge(
    registry,
    'sluice_controller_delivery_status_waiting',
    'The number of subscriptions whose status.delivery is not up to date. Only the leader reports it.',
    waiting,
  );
  const writes = new Counter({
    name: 'sluice_controller_delivery_status_writes_total',
    help: 'The number of status.delivery updates, limited to 5 per second.',
    registers: [registry],
  });
  return { wrote: () => writes.inc() };
}
