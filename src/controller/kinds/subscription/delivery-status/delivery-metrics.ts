import { Counter, Gauge, type Registry } from '../../../../telemetry/metrics.ts';

export interface DeliveryMetrics {
  readonly wrote: () => void;
}

/** @param waiting Subscriptions that wait for their turn */
export function createDeliveryMetrics(registry: Registry, waiting: () => number): DeliveryMetrics {
  const registers = [registry];
  new Gauge({
    name: 'sluice_controller_delivery_status_waiting',
    help: 'Subscriptions whose status does not show yet how deliveries go now (status.delivery), as the leader sees it.',
    registers,
    collect() {
      this.set(waiting());
    },
  });
  const writes = new Counter({
    name: 'sluice_controller_delivery_status_writes_total',
    help: 'Statuses that were given another state of deliveries (status.delivery): at most 5 a second.',
    registers,
  });
  return { wrote: () => writes.inc() };
}
