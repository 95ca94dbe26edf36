import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { ALERT_RULES } from '../../tools/generate/alerts/alert-rules.ts';
import { renderAlerts } from '../../tools/generate/alerts/alerts.ts';
import { renderDashboards } from '../../tools/generate/dashboards/dashboards.ts';
import { PANEL_ROWS } from '../../tools/generate/dashboards/panels.ts';
import { driftedFiles, OUT_OF_DATE } from '../../tools/generate/generate.ts';
import { findPromtool } from '../support/prometheus/promtool.ts';
import { ALERT_CASES } from './alert-cases.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const promtool = findPromtool();
if (promtool === undefined) {
  console.warn(
    'There is no promtool: the alerts and the dashboard are NOT checked. Run make setup, or name it by PROMTOOL.',
  );
}

const [rules = { path: '', text: '' }] = renderAlerts();

function run(args: readonly string[], files: Readonly<Record<string, string>>) {
  const { ok, output } = promtool?.run(args, files) ?? { ok: false, output: 'there is no promtool' };
  return { ok, output };
}

test('the files are what make generate writes', () => {
  expect(driftedFiles(ROOT, [...renderAlerts(), ...renderDashboards()]), OUT_OF_DATE).toEqual([]);
});

test.skipIf(promtool === undefined)('the rules are valid', () => {
  expect(run(['check', 'rules', 'rules.yaml'], { 'rules.yaml': rules.text })).toMatchObject({ ok: true });
});

test.skipIf(promtool === undefined)('every query of the dashboard can be parsed', () => {
  const queries = PANEL_ROWS.flatMap(({ panels }) => panels).flatMap(panel => Object.keys(panel.queries));
  expect(queries.length).toBeGreaterThan(50);
  const recorded = queries.map((query, i) => ({
    record: `query:${i}`,
    expr: query.replaceAll('$__rate_interval', '5m'),
  }));
  const text = stringify({ groups: [{ name: 'dashboard', rules: recorded }] });
  expect(run(['check', 'rules', '--lint=none', 'queries.yaml'], { 'queries.yaml': text })).toMatchObject({ ok: true });
});

test('every alert has a case, and a name of its own', () => {
  const names = ALERT_RULES.map(({ name }) => name);
  expect(Object.keys(ALERT_CASES).toSorted()).toEqual(names.toSorted());
  expect(new Set(names).size).toBe(names.length);
});

/** One test of promtool: after two hours, does the alert fire? */
function trial(name: string, input: Readonly<Record<string, string>>, firing: boolean): object {
  const alert = `ALERTS{alertname="${name}",alertstate="firing"}`;
  return {
    interval: '1m',
    input_series: Object.entries(input).map(([series, values]) => ({ series, values })),
    promql_expr_test: [
      { expr: `count(${alert}) > bool 0`, eval_time: '119m', exp_samples: firing ? [{ labels: '{}', value: 1 }] : [] },
    ],
  };
}

/** The alerts whose trials ended well: all in one run, each with its own rule alone. */
function passing(trialsOf: (name: string) => readonly object[]): string[] {
  const { groups } = parse(rules.text) as { groups: { rules: { alert: string }[] }[] };
  const ruleFiles = groups.flatMap(group =>
    group.rules.map(rule => [`${rule.alert}.rules`, stringify({ groups: [{ name: 'one', rules: [rule] }] })]),
  );
  const names = Object.keys(ALERT_CASES);
  const trialFiles = names.map(name => {
    const tests = trialsOf(name);
    const file = { rule_files: [`${name}.rules`], evaluation_interval: '1m', tests };
    return [`${name}.yaml`, stringify(file, { lineWidth: 0 })];
  });
  const files = Object.fromEntries([...ruleFiles, ...trialFiles]) as Record<string, string>;
  const { output } = run(['test', 'rules', ...names.map(name => `${name}.yaml`)], files);
  return names.filter(name => new RegExp(`^Unit Testing: +${name}\\.yaml\\n +SUCCESS$`, 'm').test(output));
}

const caseOf = (name: string) => ALERT_CASES[name] as (typeof ALERT_CASES)[string];

test.skipIf(promtool === undefined)('every alert fires when it has to, and only then', { timeout: 60_000 }, () => {
  const names = Object.keys(ALERT_CASES);
  const right = (name: string) => [trial(name, caseOf(name).firing, true), trial(name, caseOf(name).silent, false)];
  expect(passing(right)).toEqual(names);
  // And what passes here says something: the other way round nothing does.
  expect(passing(name => [trial(name, caseOf(name).firing, false)])).toEqual([]);
  expect(passing(name => [trial(name, caseOf(name).silent, true)])).toEqual([]);
});
