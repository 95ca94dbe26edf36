import { expect, test } from 'vitest';
import { ALERT_RULES } from '../../tools/generate/alerts/alert-rules.ts';
import { renderRule } from '../../tools/generate/alerts/alerts.ts';
import { renderDashboards } from '../../tools/generate/dashboards/dashboards.ts';
import { select } from '../../tools/generate/promql.ts';
import { findPromtool } from '../support/prometheus/promtool.ts';
import { ALERT_CASES, type Input } from './alert-cases.ts';
import { passingAlerts, type Rule } from './alert-trials.ts';

const promtool = findPromtool();

/**
 * The labels of three installations. Installations which are not broken differ from the broken one in a single label.
 */
const BROKEN = 'namespace="one",job="a"';
const SOUND = ['namespace="one",job="b"', 'namespace="two",job="a"'];

const belongingTo = (labels: string, input: Input = {}): Input =>
  Object.fromEntries(Object.entries(input).map(([series, values]) => [select(series, labels), values]));

/** Returns the series of all three installations in a single Prometheus. */
const mixed = (name: string): Input => ({
  ...belongingTo(BROKEN, ALERT_CASES[name]?.firing),
  ...Object.assign({}, ...SOUND.map(labels => belongingTo(labels, ALERT_CASES[name]?.silent))),
});

const NAMES = ALERT_RULES.map(({ name }) => name);
const rulesFor = (matchers?: string) =>
  ALERT_RULES.map(rule =>
    renderRule(matchers === undefined ? rule : { ...rule, expr: select(rule.expr, matchers) }),
  ) as Rule[];

test('adds matchers to every metric, and nowhere else', () => {
  expect(select('sum by (role) (rate(sluice_a_total[5m])) / sluice_b{c="d",e=~"sluice_x.*"}', 'n="m"')).toBe(
    'sum by (role) (rate(sluice_a_total{n="m"}[5m])) / sluice_b{n="m",c="d",e=~"sluice_x.*"}',
  );
  expect(select('nodejs_a{} and on (instance) up', 'n="m"')).toBe('nodejs_a{n="m"} and on (instance) up');
  expect(select('up{} == 0 and up{a="b"}', 'n="m"')).toBe('up{n="m"} == 0 and up{n="m",a="b"}');
});

test.skipIf(promtool === undefined)(
  'only fires an alert for the broken installation if there are several installations in one Prometheus',
  { timeout: 120_000 },
  () => {
    const trial = (name: string) => [{ input: mixed(name), firing: [`{${BROKEN}}`] }];
    expect(passingAlerts(promtool, rulesFor(), trial)).toEqual(NAMES);
  },
);

test.skipIf(promtool === undefined)(
  'only fires the rules of an installation for this installation',
  { timeout: 120_000 },
  () => {
    const broken = (name: string) => [{ input: mixed(name), firing: [`{${BROKEN}}`] }];
    expect(passingAlerts(promtool, rulesFor(BROKEN), broken)).toEqual(NAMES);
    const sound = (name: string) => [{ input: mixed(name), firing: [] }];
    expect(passingAlerts(promtool, rulesFor(SOUND[0]), sound)).toEqual(NAMES);
  },
);

test.skipIf(promtool === undefined)('fires an alert if all series of an installation have disappeared', () => {
  const name = 'SluiceRoleMissing';
  const rulesOf = (matchers?: string) => rulesFor(matchers).filter(({ alert }) => alert === name);
  const info = (labels: string) => select('sluice_build_info{instance="a",version="1"}', labels);
  const sound = { ...belongingTo(SOUND[0] ?? '', ALERT_CASES[name]?.silent) };
  const stopped = { [info(BROKEN)]: '1x70 _x50' };
  const trial = { input: { ...sound, ...stopped }, firing: [`{${BROKEN}}`] };
  expect(passingAlerts(promtool, rulesOf(), () => [trial])).toEqual([name]);
  // If the installation has never existed, its own rules report this. Rules without an installation only report this if
  // there are no series at all.
  expect(passingAlerts(promtool, rulesOf(BROKEN), () => [{ ...trial, input: sound }])).toEqual([name]);
  expect(passingAlerts(promtool, rulesOf(), () => [{ input: { up: '1x120' }, firing: ['{}'] }])).toEqual([name]);
});

test.skipIf(promtool === undefined)(
  'fires an alert if all processes of the facade crash, unless there was none',
  () => {
    const name = 'SluiceRoleMissing';
    const facade = 'sluice_role_ready{role="facade",instance="a"}';
    const trialOf = (values: string, firing: readonly string[]) => ({
      input: belongingTo(BROKEN, { ...ALERT_CASES[name]?.silent, [facade]: values }),
      firing,
    });
    const trials = [trialOf('1x100 _x20', [`{${BROKEN}}`]), trialOf('_x120', []), trialOf('1x20 _x100', [])];
    const rules = rulesFor().filter(({ alert }) => alert === name);
    expect(passingAlerts(promtool, rules, () => trials)).toEqual([name]);
  },
);

interface Dashboard {
  readonly templating: { readonly list: readonly { readonly name: string; readonly definition?: string }[] };
  readonly panels: readonly { readonly title: string; readonly targets?: readonly { readonly expr: string }[] }[];
}

test('selects the displayed installation in every query of the dashboard', () => {
  const { templating, panels } = JSON.parse(renderDashboards()[0]?.text ?? '') as Dashboard;
  expect(templating.list.map(({ name }) => name)).toEqual(['datasource', 'namespace', 'job']);
  expect(templating.list.map(({ definition }) => definition)).toEqual([
    undefined,
    'label_values(sluice_build_info, namespace)',
    'label_values(sluice_build_info{namespace="$namespace"}, job)',
  ]);
  const shown = 'namespace="$namespace",job="$job"';
  const queries = panels.flatMap(({ targets = [] }) => targets).map(({ expr }) => expr);
  expect(queries.length).toBeGreaterThan(50);
  for (const query of queries) {
    const metrics = [...query.matchAll(/\b[a-z]+(?:_[a-z0-9]+)+\b(?![="(])(?:\{([^}]*))?/g)].filter(
      ([found]) => !found.startsWith('histogram_quantile'),
    );
    expect(metrics.length, query).toBeGreaterThan(0);
    for (const [metric, matchers = ''] of metrics)
      expect(matchers.startsWith(shown), `${metric} in ${query}`).toBe(true);
  }
});
