/** One alert, with its runbook. */
export interface AlertRule {
  readonly name: string;
  /** PromQL over the metrics of docs/metrics.md. */
  readonly expr: string;
  readonly for: `${number}m`;
  /** critical: events are refused, late or at risk now; warning: they will be; info: a producer or a partner has to act. */
  readonly severity: 'critical' | 'warning' | 'info';
  /** What is wrong, in one sentence; may name labels of the expression as `{{ $labels.x }}`. */
  readonly summary: string;
  /** The impact on producers and partners. */
  readonly impact: string;
  readonly steps: readonly string[];
}

export interface AlertGroup {
  readonly name: string;
  readonly rules: readonly AlertRule[];
}

/** Returns PromQL for the share of one rate in another; it has no result while nothing happens. */
export const share = (part: string, whole: string, window: string) =>
  `sum(rate(${part}[${window}])) / sum(rate(${whole}[${window}]))`;

/** Returns PromQL for the 99th percentile of a histogram. */
export const p99 = (histogram: string, matchers = '') =>
  `histogram_quantile(0.99, sum by (le) (rate(${histogram}_bucket${matchers}[5m])))`;
