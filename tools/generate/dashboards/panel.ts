/** A panel. `unit` is a unit of Grafana. */
export interface Panel {
  readonly title: string;
  readonly description: string;
  readonly unit: 'short' | 'reqps' | 's' | 'bytes' | 'percentunit' | 'ops' | 'none';
  /** The legend for each PromQL query. `{{label}}` is replaced with the value of a label. */
  readonly queries: Readonly<Record<string, string>>;
  /** If true, shows a single number instead of a graph. */
  readonly stat?: true;
}

export interface PanelRow {
  readonly title: string;
  readonly panels: readonly Panel[];
}

/** Returns PromQL for a rate per second, optionally grouped by the labels in `by`. */
export const rate = (of: string, by?: string) =>
  by === undefined ? `sum(rate(${of}[$__rate_interval]))` : `sum by (${by}) (rate(${of}[$__rate_interval]))`;

/** Returns queries for the median and the 99th percentile of a histogram. */
export const quantiles = (histogram: string) =>
  Object.fromEntries(
    [0.5, 0.99].map(q => [
      `histogram_quantile(${q}, sum by (le) (rate(${histogram}_bucket[$__rate_interval])))`,
      `p${q * 100}`,
    ]),
  );
