import { Counter, Gauge, type Registry } from '../../../../telemetry/metrics.ts';

export interface DeliveryMetrics {
  readonly wrote: () => void;
}

/** @param waiting returns how many Subscriptions wait for a write */
export function createDeliveryMetrics(registry: Registry, waiting: () => number): DeliveryMetrics {
  const registers = [registry];
  new Gauge({
    name: 'sluice_controller_delivery_status_waiting',
    help: 'Subscriptions whose status.delivery is out of date and waits to be written. Only the leader reports it.',
    registers,
    collect() {
      this.set(waiting());
    },
  });
  const writes = new Counter({
    name: 'sluice_controller_delivery_status_writes_total',
    help: 'Writes of status.delivery, at most 5 a second.',
    registers,
  });
  return { wrote: () => writes.inc() };
}
