import { Registry } from 'prom-client';

export { Counter, Gauge, Histogram, type Metric, type Registry } from 'prom-client';

/** A registry of its own for each process (and each test): nothing is registered globally. */
export function createRegistry(): Registry {
  return new Registry();
}
