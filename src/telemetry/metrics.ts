import { Registry } from 'prom-client';

export { Counter, Gauge, Histogram, type Metric, type Registry } from 'prom-client';

/** Creates the registry to use for a process or a test. We don't register metrics globally. */
export function createRegistry(): Registry {
  return new Registry();
}
