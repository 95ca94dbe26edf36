import { Counter, Gauge, Registry } from 'prom-client';
import { createTally } from './tally.ts';

export { Counter, Gauge, Histogram, type Metric, type Registry } from 'prom-client';

/** Creates the registry to use for a process or a test. We don't register metrics globally. */
export function createRegistry(): Registry {
  return new Registry();
}

/** Registers a gauge without labels. Each scrape calls `read`. If it returns undefined, the gauge is NaN. */
export function registerGauge(
  registry: Registry,
  name: string,
  help: string,
  read: () => number | undefined | Promise<number | undefined>,
): void {
  new Gauge({
    name,
    help,
    registers: [registry],
    async collect() {
      this.set((await read()) ?? Number.NaN);
    },
  });
}

/**
 * Creates a counter with a single label. The known values of the label start at 0 so that their series exist before the
 * first event. Returns a function that adds to the series of a value, which can be used in code that is run for every
 * event.
 */
export function createLabeledCounter<V extends string | number>(
  registry: Registry,
  options: { readonly name: string; readonly help: string; readonly label: string; readonly known: readonly V[] },
): (value: V, count?: number) => void {
  const { name, help, label, known } = options;
  const counts = createTally<V>();
  for (const value of known) counts.add(value, 0);
  new Counter({
    name,
    help,
    labelNames: [label],
    registers: [registry],
    collect() {
      counts.take((value, count) => this.inc({ [label]: value }, count));
    },
  });
  return counts.add;
}
