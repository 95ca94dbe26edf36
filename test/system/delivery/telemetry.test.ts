import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Pool } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { tenantId } from '../../../src/core/ids/ids.ts';
import { COUNTED_KINDS } from '../../../src/core/limits/counted-limits.ts';
import { ALERT_RULES } from '../../../tools/generate/alerts/alert-rules.ts';
import { PANEL_ROWS } from '../../../tools/generate/dashboards/panels.ts';
import { packagesIn } from '../../support/loaded-packages.ts';
import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from '../../support/otlp-receiver.ts';
import { keyOfSeries, parseExposition, type Series } from '../../support/prometheus/exposition.ts';
import type { Sluice } from '../../support/sluice.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { QUERIES } from '../../telemetry/first-steps.ts';
import { missingFrom } from '../../telemetry/selectors.ts';
import { type FacadeWorld, openFacadeWorld } from '../rest/support/facade-world.ts';
import { eventually } from '../support/deadline.ts';
import { createPublisher, makeSample } from '../support/publisher.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { liveOneDay, QUEUE } from './telemetry-day.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');

let world: FacadeWorld;
let sluice: Sluice;
let receiver: Receiver;
let collector: OtlpReceiver;

const SOON = { timeout: 60_000, interval: 200 };
/** On a busy machine, the requests while the process is stopping take some seconds. */
const SHUTDOWN_SECONDS = 15;

const TRACED = { OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json', OTEL_BSP_SCHEDULE_DELAY: '200' };

beforeAll(async () => {
  world = await openFacadeWorld();
  receiver = await startReceiver();
  collector = await startOtlpReceiver();
  // All roles in a single process.
  sluice = await world.start({
    env: { ...TRACED, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, SLUICE_LOG_LEVEL: 'debug' },
  });
});

afterAll(async () => {
  await receiver?.close();
  await world?.stop();
  await collector?.close();
});

async function scrape(): Promise<{ readonly text: string; readonly series: Series[] }> {
  const text = await (await fetch(`${sluice.opsUrl}/metrics`)).text();
  return { text, series: parseExposition(text) };
}

const liveADay = (name: string) => liveOneDay({ world, sluice, receiver }, name);

/** Metrics of libraries, which only depend on the process. */
const OF_NODE = /^(?:process|nodejs)_/;

/** The names of the documented metrics. */
function readDocumented(): string[] {
  const page = readFileSync(join(ROOT, 'docs', 'metrics.md'), 'utf8');
  return [...page.matchAll(/^\| `(\w+)` \| /gm)].map(([, name = '']) => name);
}

test('every documented metric exists, and all metrics of Sluice are documented', async () => {
  await liveADay('first');
  const { text } = await scrape();
  const seen = [...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name = '']) => name);
  const documented = readDocumented();
  expect(documented.length).toBeGreaterThan(50);
  expect(seen.filter(name => !OF_NODE.test(name)).toSorted()).toEqual(documented.toSorted());
  expect(seen).toEqual(expect.arrayContaining(['process_cpu_seconds_total', 'nodejs_eventloop_lag_p99_seconds']));
});

test('counts all operations', async () => {
  let series: Series[] = [];
  const valueOf = (key: string) => series.find(each => keyOfSeries(each) === key)?.value;
  await eventually('the last delivery is a dead letter', async () => {
    ({ series } = await scrape());
    return valueOf('sluice_dispatcher_events_total{result="dead"}') === 1;
  });
  expect({
    accepted: valueOf('sluice_ingress_events_total{result="accepted"}'),
    duplicate: valueOf('sluice_ingress_events_total{result="duplicate"}'),
    keyless: valueOf('sluice_ingress_not_routed_total{reason="missing_group_key"}'),
    inactive: valueOf('sluice_ingress_not_routed_total{reason="not_activated"}'),
    routed: valueOf('sluice_ingress_routed_total{}'),
    delivered: valueOf('sluice_dispatcher_events_total{result="delivered"}'),
    ages: valueOf('sluice_dispatcher_delivery_age_seconds_count{}'),
    missing: valueOf('sluice_facade_refused_tokens_total{reason="missing"}'),
    leads: valueOf('leader_election_master_status{name="sluice-controller"}'),
    streams: valueOf('sluice_controller_objects{kind="CatalogStream"}'),
    failures: valueOf('sluice_dispatcher_failures_total{}'),
    redis: valueOf('sluice_redis_connected{}'),
    ready: series.filter(({ name, value }) => name === 'sluice_role_ready' && value === 1).length,
  }).toEqual({
    accepted: 4,
    duplicate: 1,
    keyless: 1,
    inactive: 1,
    routed: 3,
    delivered: 2,
    ages: 2,
    missing: 1,
    leads: 1,
    streams: 1,
    failures: 0,
    redis: 1,
    ready: 4,
  });
  expect(valueOf('sluice_redis_memory_used_bytes{}')).toBeGreaterThan(100_000);
  // This is sampled, so it may still include earlier open deliveries.
  expect(valueOf('sluice_dispatcher_open_deliveries{}')).toBeLessThan(4);
  // Some of them are sampled, or still show the last delivery.
  const state = async () => {
    ({ series } = await scrape());
    return {
      home: valueOf('sluice_dispatcher_parts{duty="home"}'),
      work: valueOf('sluice_dispatcher_parts{duty="work"}'),
      held: sumOf(series, 'sluice_dispatcher_parts_held'),
      claims: valueOf('sluice_dispatcher_claims{}'),
      queues: valueOf('sluice_work_waiting{index="queues"}'),
      overdue: sumOf(series, 'sluice_work_overdue_seconds'),
    };
  };
  const expected = { home: 1, work: 0, held: 0, claims: 0, queues: 1, overdue: 0 };
  await expect.poll(state, SOON).toEqual(expected);
  // There are three single deliveries, two of them with a retry.
  expect(valueOf('sluice_dispatcher_exchanges_total{result="ok"}')).toBeGreaterThan(4);
});

const sumOf = (series: readonly Series[], name: string) =>
  series.filter(each => each.name === name).reduce((sum, { value }) => sum + value, 0);

test('alerts and the dashboard only use existing metrics', async () => {
  const queries = PANEL_ROWS.flatMap(({ panels }) => panels).flatMap(panel => Object.keys(panel.queries));
  const expressions = [...ALERT_RULES.map(({ expr }) => expr), ...queries, ...QUERIES];
  expect(expressions.length).toBeGreaterThan(80);
  let missing: string[] = [];
  async function isComplete(): Promise<boolean> {
    const { series } = await scrape();
    missing = expressions.flatMap(expression => missingFrom(series, expression));
    return missing.length === 0;
  }
  // Stored bytes are sampled every 15 s, and recorded a few seconds earlier.
  await eventually('all series exist', isComplete).catch(() => {});
  expect(missing).toEqual([]);
});

/**
 * Returns the metrics with a label for the workspaces or accounts with the highest usage, and the number of their
 * series.
 */
const OF_TEN = {
  sluice_workspace_stored_bytes: 10,
  sluice_controller_account_limit_used_ratio: 10 * COUNTED_KINDS.length,
};

test('additional workspaces do not create additional series, and labels do not contain their names', async () => {
  await liveADay('second');
  const before = new Set((await scrape()).series.map(keyOfSeries));
  for (const name of ['third', 'fourth', 'fifth']) await liveADay(name);
  const { series: all } = await scrape();
  const series = all.filter(({ name }) => !(name in OF_TEN));
  for (const [name, most] of Object.entries(OF_TEN)) {
    expect(all.filter(each => each.name === name).length, name).toBeLessThanOrEqual(most);
  }
  // The outcome of calls to the API server depends on timing. There are only a few codes.
  const grown = series.filter(each => !before.has(keyOfSeries(each)) && !each.name.startsWith('rest_client_'));
  expect(grown.filter(({ name }) => !OF_NODE.test(name)).map(keyOfSeries)).toEqual([]);
  const values = [...new Set(series.flatMap(({ labels }) => Object.values(labels)))];
  const names = ['first', 'second', 'third', 'fourth', 'fifth', QUEUE, 'open', '127.0.0.1'];
  const ids = /(?:ten|int|sub|acc|evt|str|act|blk)_[0-9a-hjkmnp-tv-z]{20}/;
  expect(values.filter(value => ids.test(value) || names.some(name => value.includes(name)))).toEqual([]);
});

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const CALLER = '00f067aa0ba902b7';

/** Returns all spans of a trace after waiting for this number of spans, which are sent in batches. */
async function spansOf(traceId: string, count: number): Promise<ReceivedSpan[]> {
  const { value } = await eventually('the spans have been received', async () => {
    const spans = collector.spans.filter(span => span.traceId === traceId);
    return spans.length >= count && spans;
  });
  return value;
}

test("one trace connects the producer's request and the partner's request, including a retry", async () => {
  const key = 'an-ingress-key-of-first';
  const publisher = createPublisher({ ingressUrl: sluice.ingressUrl, producer: 'first', queue: QUEUE, key });
  receiver.clear();
  await publisher.post(makeSample('traced.late', 'open', 'body'), {
    headers: { traceparent: `00-${TRACE}-${CALLER}-01` },
  });
  await publisher.close();
  // Events are routed when they are stored, in the same step.
  const spans = await spansOf(TRACE, 3);
  expect(spans).toHaveLength(3);
  const accepted = spans.find(({ kind }) => kind === 2) as ReceivedSpan;
  expect(accepted).toMatchObject({
    service: 'sluice',
    name: 'POST /events/:tenant/:queue',
    parentSpanId: CALLER,
    attributes: { 'http.route': '/events/:tenant/:queue', 'http.response.status_code': 202 },
  });
  const attempts = spans.filter(({ kind }) => kind === 3).toSorted((a, b) => Number(a.startNs - b.startNs));
  expect(attempts).toMatchObject([
    { parentSpanId: accepted.spanId, failed: true, attributes: { 'http.response.status_code': 500 } },
    { parentSpanId: accepted.spanId, failed: false, attributes: { 'http.response.status_code': 204 } },
  ]);
  expect(attempts[1]?.attributes).toMatchObject({
    'http.request.resend_count': 1,
    'server.address': '127.0.0.1',
    'messaging.destination.name': QUEUE,
  });
  // The partner receives the attempt's span, without its parents.
  const passedOn = receiver.attempts.map(({ headers }) => headers.traceparent);
  expect(passedOn).toEqual(attempts.map(({ spanId }) => `00-${TRACE}-${spanId}-01`));
});

test('a REST call is traced including its audit line, and reconciliations are traced', async () => {
  const producer = await world.as(sluice, 'first');
  const traceId = 'a'.repeat(32);
  const path = `/waas/producer/${tenantId('first')}/packages`;
  const traceparent = `00-${traceId}-${CALLER}-01`;
  expect((await producer.call('POST', path, { name: 'Traced' }, { traceparent })).status).toBe(201);
  const [call] = await spansOf(traceId, 1);
  expect(call).toMatchObject({ kind: 2, parentSpanId: CALLER, attributes: { 'http.response.status_code': 201 } });
  expect(call?.attributes['http.route']).toMatch(/^\/waas\/producer\/:\w+\/packages$/);
  const audited = async () =>
    (await sluice.logLines()).filter(line => line['audit'] === true && line['traceId'] === traceId);
  await expect.poll(audited, SOON).toMatchObject([{ operation: 'createPackage', status: 201 }]);
  const reconciled = collector.spans.filter(({ name }) => name.startsWith('reconcile '));
  expect(new Set(reconciled.map(({ name }) => name)).size).toBeGreaterThan(5);
});

test('traces and logs do not contain secrets or personal addresses', async () => {
  const lines = await sluice.logLines();
  expect(lines.length).toBeGreaterThan(3);
  for (const line of lines) {
    expect(line).toMatchObject({ level: expect.any(String), time: expect.any(String), msg: expect.any(String) });
  }
  const exported = JSON.stringify([lines, collector.spans.map(({ name, attributes }) => [name, attributes])]);
  // The Redis address contains the name of a Redis user if a connection takes long.
  expect(exported.replaceAll('redis://sluice-all@127.0.0.1:', '')).not.toMatch(/an-ingress-key-of|Bearer |@/);
});

test('does not load tracing if it is disabled', async () => {
  async function loadedBy(env: Readonly<Record<string, string>>): Promise<string[]> {
    const coverage = await temporaryFolder('coverage');
    const more = { ...env, NODE_V8_COVERAGE: coverage.path };
    await (await world.installation.start({ role: 'dispatcher', unbundled: true, env: more })).stop();
    const packages = await packagesIn(coverage.path);
    await coverage.remove();
    expect(packages).toContain('ioredis');
    return packages.filter(name => name.startsWith('@opentelemetry/'));
  }
  // prom-client requires this for its exemplars.
  expect(await loadedBy({})).toEqual(['@opentelemetry/api']);
  const on = await loadedBy({ ...TRACED, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
  expect(on).toEqual(expect.arrayContaining(['@opentelemetry/api', '@opentelemetry/sdk-trace']));
});

test('a process that is stopping becomes unready immediately, continues to serve for a while, and does not lose any requests', async () => {
  const ending = await world.start({ env: { SLUICE_SHUTDOWN_DELAY_SECONDS: `${SHUTDOWN_SECONDS}` } });
  const agent = new Pool(ending.ingressUrl, { connections: 1, pipelining: 1 });
  const key = 'an-ingress-key-of-first';
  const post = async (id: string) => {
    const response = await agent.request({
      method: 'POST',
      path: `/events/${tenantId('first')}/${QUEUE}`,
      headers: { authorization: `Bearer ${key}`, 'webhook-id': id },
      body: 'body',
    });
    await response.body.dump();
    return { status: response.statusCode, connection: response.headers.connection };
  };
  expect(await post('ending.0')).toMatchObject({ status: 202, connection: 'keep-alive' });
  const rest = () => fetch(`${ending.facadeUrl}/waas/producer/${tenantId('first')}/catalog`);
  expect((await rest()).headers.get('connection')).toBe('keep-alive');
  const signalledMs = performance.now();
  const ended = ending.stop();
  await eventually('the process is not ready', async () => (await ending.readyz())[0] === 503, { everyMs: 10 });
  expect((await ending.readyz())[1]).toBe('process: The process is stopping.\n');
  let answered = 0;
  while (answered < 10) expect(await post(`ending.${++answered}`)).toEqual({ status: 202, connection: 'close' });
  const late = await rest();
  expect([late.status, late.headers.get('connection')]).toEqual([401, 'close']);
  expect(await ended).toMatchObject({ code: 0 });
  expect(performance.now() - signalledMs).toBeGreaterThan(SHUTDOWN_SECONDS * 1_000 - 100);
  await expect(post('ending.late')).rejects.toThrow();
  await agent.destroy();
});
