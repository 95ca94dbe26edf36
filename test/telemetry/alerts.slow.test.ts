import { expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { renderAlerts } from '../../tools/generate/alerts/alerts.ts';
import { PANEL_ROWS } from '../../tools/generate/dashboards/panels.ts';
import { findPromtool } from '../support/prometheus/promtool.ts';
import { ALERT_CASES, type Input } from './alert-cases.ts';
import { passingAlerts, type Rule, type Trial } from './alert-trials.ts';
import { QUERIES } from './first-steps.ts';

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

const { groups } = parse(rules.text) as { groups: { rules: Rule[] }[] };
const allRules = groups.flatMap(group => group.rules);
const passing = (trialsOf: (name: string) => readonly Trial[]) => passingAlerts(promtool, allRules, trialsOf);

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
  // A single email, which is resent every 15 minutes.
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
