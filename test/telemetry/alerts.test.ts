import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ALERT_RULES } from '../../tools/generate/alerts/alert-rules.ts';
import { renderAlerts, renderRunbooks } from '../../tools/generate/alerts/alerts.ts';
import { renderDashboards } from '../../tools/generate/dashboards/dashboards.ts';
import { driftedFiles, OUT_OF_DATE } from '../../tools/generate/generate.ts';
import { ALERT_CASES } from './alert-cases.ts';
import { FIRST_STEPS, KUBECTL_COMMANDS, REDIS_COMMANDS } from './first-steps.ts';

const ROOT = join(import.meta.dirname, '..', '..');

test('the files are the output of make generate', () => {
  expect(driftedFiles(ROOT, [...renderAlerts(), ...renderDashboards()]), OUT_OF_DATE).toEqual([]);
});

test('every alert has a case and a unique name', () => {
  const names = ALERT_RULES.map(({ name }) => name);
  expect(Object.keys(ALERT_CASES).toSorted()).toEqual(names.toSorted());
  expect(new Set(names).size).toBe(names.length);
});

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

test('the links of the runbooks in the chart work without the other pages', () => {
  const { text } = renderAlerts().find(({ path }) => path === 'charts/sluice/files/runbooks.md') ?? { text: '' };
  expect(text).toContain('](https://sluice.dev/install#monitoring)');
  expect(text.match(/\]\((?!https:|#)[^)]*\)/g)).toBeNull();
});

test('the runbooks do not contain templates of Prometheus', () => {
  expect(renderRunbooks()).not.toContain('{{');
});
