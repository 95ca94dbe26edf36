import { Registry } from 'prom-client';

export { Counter, Gauge, Histogram, type Metric, type Registry } from 'prom-client';

/** Creates the registry of one process or test: nothing is registered globally. */
export function createRegistry(): Registry {
  return new Registry();
}
