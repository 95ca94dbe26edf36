import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { ALERT_RULES } from '../../tools/generate/alerts/alert-rules.ts';
import { renderAlerts, renderRunbooks } from '../../tools/generate/alerts/alerts.ts';
import { renderDashboards } from '../../tools/generate/dashboards/dashboards.ts';
import { PANEL_ROWS } from '../../tools/generate/dashboards/panels.ts';
import { driftedFiles, OUT_OF_DATE } from '../../tools/generate/generate.ts';
import { findPromtool } from '../support/prometheus/promtool.ts';
import { ALERT_CASES, type Input } from './alert-cases.ts';
import { passingAlerts, type Rule, type Trial } from './alert-trials.ts';
import { FIRST_STEPS, KUBECTL_COMMANDS, QUERIES, REDIS_COMMANDS } from './first-steps.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const promtool = findPromtool();
if (promtool === undefined) {
  console.warn(
    'promtool is missing: the alerts and the dashboard are NOT checked. Run make setup, or set PROMTOOL to its path.',
  );
}

const [rules = { path: '', text: '' }] = renderAlerts();

function run(args: readonly string[], files: Readonly<Record<string, string>>) {
  const { ok, output } = promtool?.run(args, files) ?? { ok: false, output: 'there is no promtool' };
  return { ok, output };
}

test('the files are the output of make generate', () => {
  expect(driftedFiles(ROOT, [...renderAlerts(), ...renderDashboards()]), OUT_OF_DATE).toEqual([]);
});

test.skipIf(promtool === undefined)('the rules are valid', () => {
  expect(run(['check', 'rules', 'rules.yaml'], { 'rules.yaml': rules.text })).toMatchObject({ ok: true });
});

test.skipIf(promtool === undefined)('every query of the dashboard and of a first step is valid', () => {
  const shown = PANEL_ROWS.flatMap(({ panels }) => panels).flatMap(panel => Object.keys(panel.queries));
  const queries = [...shown, ...QUERIES];
  expect(queries.length).toBeGreaterThan(50);
  const recorded = queries.map((query, i) => ({
    record: `query:${i}`,
    expr: query.replaceAll('$__rate_interval', '5m'),
  }));
  const text = stringify({ groups: [{ name: 'dashboard', rules: recorded }] });
  expect(run(['check', 'rules', '--lint=none', 'queries.yaml'], { 'queries.yaml': text })).toMatchObject({ ok: true });
});

test('every alert has a case and a unique name', () => {
  const names = ALERT_RULES.map(({ name }) => name);
  expect(Object.keys(ALERT_CASES).toSorted()).toEqual(names.toSorted());
  expect(new Set(names).size).toBe(names.length);
});

const { groups } = parse(rules.text) as { groups: { rules: Rule[] }[] };
const allRules = groups.flatMap(group => group.rules);
const passing = (trialsOf: (name: string) => readonly Trial[]) => passingAlerts(promtool, allRules, trialsOf);

test('the first step of every runbook is a command or a query', () => {
  for (const [name, step] of Object.entries(FIRST_STEPS)) expect(step, name).toMatch(/^(kubectl|redis-cli) |\(/);
  expect(KUBECTL_COMMANDS.length).toBeGreaterThan(10);
  expect(REDIS_COMMANDS.length).toBeGreaterThan(3);
  // The command must read a subscription of Sluice, and not of another operator.
  expect(KUBECTL_COMMANDS.join(' ')).not.toMatch(/\b(subscriptions|integrations|packages|blocks)(?!\.sluice\.dev)/);
});

test('each log message in a runbook is the beginning of a message in the source code', () => {
  const source = globSync('src/**/*.ts', { cwd: ROOT, exclude: ['**/*.test.ts'] })
    .map(file => readFileSync(join(ROOT, file), 'utf8'))
    .join('\n');
  const steps = ALERT_RULES.flatMap(rule => rule.steps);
  const named = steps.flatMap(step => [...step.matchAll(/messages? `([^`]+)`(?: \(\d+\))?(?: and `([^`]+)`)?/g)]);
  const messages = named.flatMap(([, ...found]) => found.filter(message => message !== undefined));
  expect(messages.length).toBeGreaterThan(15);
  expect(messages.filter(message => !source.includes(`'${message}`))).toEqual([]);
});

test('each REST call in a runbook has the parameters that its route requires', () => {
  const { paths } = JSON.parse(readFileSync(join(ROOT, 'docs', 'openapi.json'), 'utf8')) as {
    paths: Record<string, Record<string, { parameters?: { in: string; name: string; required?: boolean }[] }>>;
  };
  const calls = [...renderRunbooks().matchAll(/`(GET|POST) (\/waas[^`?]*)\??([^`]*)`/g)];
  expect(calls.length).toBeGreaterThan(0);
  for (const [call, method = '', path = '', query = ''] of calls) {
    const route = paths[path]?.[method.toLowerCase()];
    expect(route, call).toBeDefined();
    const required = route?.parameters?.filter(parameter => parameter.in === 'query' && parameter.required);
    expect([...new URLSearchParams(query).keys()], call).toEqual(
      expect.arrayContaining(required?.map(({ name }) => name) ?? []),
    );
  }
});

test('the runbooks do not contain templates of Prometheus', () => {
  expect(renderRunbooks()).not.toContain('{{');
});

test.skipIf(promtool === undefined)('members waiting in an index only cause the alert of that index', () => {
  const overdue = (index: string, firing: boolean): Trial => ({
    input: { [`sluice_work_overdue_seconds{index="${index}"}`]: '301x120' },
    firing: firing ? ['{}'] : [],
  });
  const indexes = { SluiceRoutingStuck: 'queues', SluiceDeliveryStuck: 'parts', SluiceReplaysStuck: 'replays' };
  const names = Object.keys(indexes);
  const trials = (name: string) => Object.values(indexes).map(each => overdue(each, indexes[name as never] === each));
  expect(
    passingAlerts(
      promtool,
      allRules.filter(({ alert }) => names.includes(alert)),
      trials,
    ),
  ).toEqual(names);
});

/** Series for which an alert must fire, in addition to the series of its case. */
const OTHER_SIGNS: Readonly<Record<string, Input>> = {
  // Ingress has rejected all events since the usage was above 82 %.
  SluiceRedisMemoryFull: {
    sluice_redis_memory_used_ratio: '0.8x120',
    'sluice_ingress_memory_refusals_total{reason="full"}': '0+1x120',
  },
  SluiceEventsExpired: { 'sluice_dispatcher_not_routed_total{reason="expired"}': '0+1x120' },
  // The same replica loses the Lease every ten minutes, and holds it again before the next scrape.
  SluiceLeaderChangesOften: {
    [`leader_election_master_status{name="sluice-controller",instance="a"}`]: '1x120',
    'sluice_controller_terms_total{instance="a"}': Array.from({ length: 13 }, (_, n) => `${n}x9`).join(' '),
  },
  // A single email, which is sent again every 15 minutes.
  SluiceInvitationMailFailing: {
    'sluice_controller_invitation_mails_total{result="failed"}': Array.from({ length: 8 }, (_, n) => `${n}x14`).join(
      ' ',
    ),
    'sluice_controller_invitation_mails_total{result="sent"}': '3x120',
  },
};

test.skipIf(promtool === undefined)('fires for each sign of the same problem', () => {
  const names = Object.keys(OTHER_SIGNS);
  const rulesOfNames = allRules.filter(({ alert }) => names.includes(alert));
  const trials = (name: string) => [{ input: OTHER_SIGNS[name] ?? {}, firing: ['{}'] }];
  expect(passingAlerts(promtool, rulesOfNames, trials).toSorted()).toEqual(names.toSorted());
});

test.skipIf(promtool === undefined)('a failover that is over does not fire an alert', () => {
  const total = '0+1000x120';
  const failover = '0x113 200 400 600x4';
  const inputs: Readonly<Record<string, Input>> = {
    SluiceRedisErrors: {
      'sluice_redis_command_errors_total{reason="connection"}': failover,
      sluice_redis_commands_total: total,
    },
    SluiceIngressErrors: {
      'sluice_ingress_requests_total{code="503"}': failover,
      'sluice_ingress_requests_total{code="202"}': total,
    },
  };
  const names = Object.keys(inputs);
  const rulesOfNames = allRules.filter(({ alert }) => names.includes(alert));
  expect(passingAlerts(promtool, rulesOfNames, name => [{ input: inputs[name] ?? {}, firing: [] }])).toEqual(names);
});

const caseOf = (name: string) => ALERT_CASES[name] as (typeof ALERT_CASES)[string];

test.skipIf(promtool === undefined)(
  'every alert fires for its firing case, and not for its silent case',
  { timeout: 120_000 },
  () => {
    const trial = (name: string, state: 'firing' | 'silent', firing: boolean): Trial => ({
      input: caseOf(name)[state],
      firing: firing ? ['{}'] : [],
    });
    const right = (name: string) => [trial(name, 'firing', true), trial(name, 'silent', false)];
    expect(passing(right)).toEqual(allRules.map(({ alert }) => alert));
    // Checks the test itself: the opposite expectations must fail.
    const first = allRules.slice(0, 1);
    expect(passingAlerts(promtool, first, name => [trial(name, 'firing', false)])).toEqual([]);
    expect(passingAlerts(promtool, first, name => [trial(name, 'silent', true)])).toEqual([]);
  },
);
