/** An alert and its runbook. */
export interface AlertRule {
  readonly name: string;
  /** PromQL over the metrics of docs/metrics.md. Aggregations must keep the installation's labels. */
  readonly expr: string;
  readonly for: `${number}m`;
  /**
   * critical: events are rejected, delayed, or at risk. warning: this will soon be the case. info: a producer or
   * partner must act.
   */
  readonly severity: 'critical' | 'warning' | 'info';
  /** A one-sentence summary, which may use labels of the expression as `{{ $labels.x }}`. */
  readonly summary: string;
  /** The impact on producers and partners. */
  readonly impact: string;
  /** The first step contains a command or a query, which is the first text in backticks. */
  readonly steps: readonly [string, ...string[]];
}

export interface AlertGroup {
  readonly name: string;
  readonly rules: readonly AlertRule[];
}

/** The labels that identify an installation. One Prometheus can monitor several installations. */
export const INSTALLATION = 'namespace, job';

/** Returns the grouping for an aggregation by installation and by `labels`. */
export const by = (...labels: readonly string[]) => `by (${[INSTALLATION, ...labels].join(', ')})`;

/** Returns PromQL for the ratio of two rates. There is no result without any activity. */
export const share = (part: string, whole: string, window: string) =>
  `sum ${by()} (rate(${part}[${window}])) / sum ${by()} (rate(${whole}[${window}]))`;

/** Returns PromQL for the 99th percentile of a histogram. */
export const p99 = (histogram: string, matchers = '') =>
  `histogram_quantile(0.99, sum ${by('le')} (rate(${histogram}_bucket${matchers}[5m])))`;

/** Returns the command that shows a role's log. */
export const logsOf = (role: string) =>
  `kubectl -n sluice-system logs -l app.kubernetes.io/component=${role} --tail=200`;

/** Returns the command that shows a role's pods. */
export const podsOf = (role: string) => `kubectl -n sluice-system get pods -l app.kubernetes.io/component=${role}`;
