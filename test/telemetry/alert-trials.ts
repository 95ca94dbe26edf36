import { stringify } from 'yaml';
import type { Promtool } from '../support/prometheus/promtool.ts';
import type { Input } from './alert-cases.ts';

/** A promtool test: the series, and the installations for which the alert fires after two hours. */
export interface Trial {
  readonly input: Input;
  /** The labels `namespace` and `job` in the format of promtool, e.g. `{namespace="a", job="b"}`. */
  readonly firing: readonly string[];
}

/** A rule in the format of Prometheus. */
export interface Rule {
  readonly alert: string;
}

function testOf(name: string, { input, firing }: Trial): object {
  const alert = `ALERTS{alertname="${name}",alertstate="firing"}`;
  return {
    interval: '1m',
    input_series: Object.entries(input).map(([series, values]) => ({ series, values })),
    promql_expr_test: [
      {
        expr: `count by (namespace, job) (${alert}) > bool 0`,
        eval_time: '119m',
        exp_samples: firing.map(labels => ({ labels, value: 1 })),
      },
    ],
  };
}

/** Returns the alerts with successful trials, both in a single run and with each rule on its own. */
export function passingAlerts(
  promtool: Promtool | undefined,
  rules: readonly Rule[],
  trialsOf: (name: string) => readonly Trial[],
): string[] {
  if (promtool === undefined) return [];
  const names = rules.map(({ alert }) => alert);
  const ruleFiles = rules.map(rule => [
    `${rule.alert}.rules`,
    stringify({ groups: [{ name: 'one', rules: [rule] }] }, { lineWidth: 0 }),
  ]);
  const trialFiles = names.map(name => {
    const tests = trialsOf(name).map(trial => testOf(name, trial));
    const file = { rule_files: [`${name}.rules`], evaluation_interval: '1m', tests };
    return [`${name}.yaml`, stringify(file, { lineWidth: 0 })];
  });
  const files = Object.fromEntries([...ruleFiles, ...trialFiles]) as Record<string, string>;
  const { output } = promtool.run(['test', 'rules', ...names.map(name => `${name}.yaml`)], files);
  return names.filter(name => new RegExp(`^Unit Testing: +${name}\\.yaml\\n +SUCCESS$`, 'm').test(output));
}
