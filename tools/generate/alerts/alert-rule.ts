/** One alert: what is wrong, for how long it has to be, and what whoever is woken by it does. */
export interface AlertRule {
  readonly name: string;
  /** PromQL over the metrics of docs/metrics.md. */
  readonly expr: string;
  readonly for: `${number}m`;
  /** critical: events are refused, late or in danger now; warning: they will be; info: somebody else's concern. */
  readonly severity: 'critical' | 'warning' | 'info';
  /** One sentence; may name labels of the expression as `{{ $labels.x }}`. */
  readonly summary: string;
  /** What it means for producers and partners. */
  readonly impact: string;
  readonly steps: readonly string[];
}

export interface AlertGroup {
  readonly name: string;
  readonly rules: readonly AlertRule[];
}

/** The share of one rate in another; nothing where nothing happens. */
export const share = (part: string, whole: string, window: string) =>
  `sum(rate(${part}[${window}])) / sum(rate(${whole}[${window}]))`;

/** The 99th percentile of a histogram. */
export const p99 = (histogram: string, matchers = '') =>
  `histogram_quantile(0.99, sum by (le) (rate(${histogram}_bucket${matchers}[5m])))`;
