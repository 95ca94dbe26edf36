import { Counter, Gauge, type Registry } from '../../../../telemetry/metrics.ts';

export interface DeliveryMetrics {
  readonly wrote: () => void;
}

/** Creates the metrics. @param waiting returns how many Subscriptions wait for their turn */
export function createDeliveryMetrics(registry: Registry, waiting: () => number): DeliveryMetrics {
  const registers = [registry];
  new Gauge({
    name: 'sluice_controller_delivery_status_waiting',
    help: 'Subscriptions whose status.delivery does not show the current state of deliveries yet, as the leader sees it.',
    registers,
    collect() {
      this.set(waiting());
    },
  });
  const writes = new Counter({
    name: 'sluice_controller_delivery_status_writes_total',
    help: 'Writes of a changed status.delivery: at most 5 a second.',
    registers,
  });
  return { wrote: () => writes.inc() };
}
