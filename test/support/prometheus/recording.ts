import { stringify } from 'yaml';
import { keyOfSeries, parseExposition } from './exposition.ts';
import type { Promtool } from './promtool.ts';

/** The metrics of some processes, scraped like Prometheus does. */
export interface Recording {
  /**
   * Adds the texts of `/metrics` at one point in time, by labels that Prometheus would add, such as `instance="a"`.
   * Undefined for a process that did not respond.
   */
  readonly add: (texts: ReadonlyMap<string, string | undefined>) => void;
  /** Returns the names of all alerts that have fired since the start, in alphabetical order. */
  readonly firedAlerts: (promtool: Promtool, rules: string) => string[];
}

const RULES = 'rules.yaml';
const TRIAL = 'trial.yaml';

/** @param everySeconds time between two calls of `add` */
export function createRecording(everySeconds: number): Recording {
  const values = new Map<string, string[]>();
  let moments = 0;

  function note(key: string, value: string): void {
    const known = values.get(key) ?? [];
    if (known.length === 0) values.set(key, known);
    while (known.length < moments) known.push('_');
    known[moments] = value;
  }

  return {
    add: texts => {
      const seen = new Set<string>();
      for (const [labels, text] of texts) {
        const added = Object.fromEntries([...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, of]) => [name, of]));
        const series = [
          { name: 'up', labels: {}, value: text === undefined ? 0 : 1 },
          ...(text === undefined ? [] : parseExposition(text)),
        ];
        for (const each of series) {
          const key = keyOfSeries({ ...each, labels: { ...each.labels, ...added } });
          seen.add(key);
          note(key, `${each.value}`);
        }
      }
      // Series that a target no longer has become stale immediately.
      for (const [key, known] of values) if (!seen.has(key) && known.at(-1) !== 'stale') note(key, 'stale');
      moments++;
    },
    firedAlerts: (promtool, rules) => {
      const trial = {
        rule_files: [RULES],
        evaluation_interval: '15s',
        tests: [
          {
            interval: `${everySeconds}s`,
            input_series: [...values].map(([series, list]) => ({ series, values: list.join(' ') })),
            promql_expr_test: [
              {
                expr: 'group by (alertname) (max_over_time(ALERTS{alertstate="firing"}[2h]))',
                eval_time: `${moments * everySeconds}s`,
                // This is never true, so promtool lists all results.
                exp_samples: [{ labels: 'nothing{}', value: 0 }],
              },
            ],
          },
        ],
      };
      const files = { [RULES]: rules, [TRIAL]: stringify(trial, { lineWidth: 0 }) };
      const { output } = promtool.run(['test', 'rules', TRIAL], files);
      const got = /got:([^]*)$/.exec(output)?.[1];
      if (got === undefined) throw new Error(`promtool did not list the alerts: ${output}`);
      return [...got.matchAll(/alertname="(\w+)"/g)].map(([, name = '']) => name).toSorted();
    },
  };
}
