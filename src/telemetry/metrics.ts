import { Registry } from 'prom-client';

export { Counter, Gauge, Histogram, type Metric, type Registry } from 'prom-client';

/** Creates the registry of a process or a test. Metrics are not registered globally. */
export function createRegistry(): Registry {
  return new Registry();
}
