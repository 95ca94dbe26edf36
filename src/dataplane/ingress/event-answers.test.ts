import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Client } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { createLogger } from '../../telemetry/log.ts';
import { createRegistry } from '../../telemetry/metrics.ts';
import type { Tracing } from '../../telemetry/tracing.ts';
import { createAnswers } from './answers.ts';
import { createIngress } from './server.ts';
import { startIngress } from './testing/ingress-harness.ts';
import { createMemoryStore } from './testing/memory-store.ts';

async function setUp() {
  const { store, ingress, port } = await startIngress();
  // All requests use one connection.
  const client = new Client(`http://127.0.0.1:${port}`);
  onTestFinished(ingress.close);
  onTestFinished(() => client.close());
  async function send(path: string, headers: Record<string, string> = {}, body = '{}') {
    const answer = await client.request({
      path,
      method: 'POST',
      headers: { 'x-api-key': store.key, ...headers },
      body,
    });
    const { date: _date, ...rest } = answer.headers;
    return { status: answer.statusCode, headers: rest, text: await answer.body.text() };
  }
  return { store, send };
}

test.each<[string, number, Record<string, string>, string?]>([
  ['a new event', 202, { 'webhook-id': 'a' }],
  ['no key', 401, { 'x-api-key': '' }],
  ['a wrong key', 401, { 'x-api-key': 'wrong' }],
  ['a compressed body', 415, { 'content-encoding': 'gzip' }],
  ['a group key that is not UTF-8', 422, { 'x-sluice-group-key': '\xff' }],
  ['a large body', 413, {}, 'x'.repeat(300_000)],
])('%s has the same response if its path has to be decoded', async (_what, status, headers, body) => {
  const { store, send } = await setUp();
  const plain = await send(`/events/${store.tenant}/orders`, headers, body);
  expect(plain.status).toBe(status);
  store.stored.length = 0;
  const duplicate = status === 202;
  const decoded = await send(`/events/${store.tenant}/%6frders`, headers, body);
  if (duplicate) {
    expect(JSON.parse(decoded.text)).toEqual({ ...JSON.parse(plain.text), duplicate: true });
    expect(Object.keys(decoded.headers)).toEqual(Object.keys(plain.headers));
  } else {
    expect(decoded).toEqual(plain);
  }
});

test('a key only gives access to its own workspace for the current request, even on a connection that has used another key', async () => {
  const { store, send } = await setUp();
  const path = `/events/${store.tenant}/orders`;
  const other = `/events/ten_${'b'.repeat(20)}/orders`;
  const statuses: number[] = [];
  for (const [to, key] of [
    [path, store.key],
    [path, 'wrong'],
    [path, store.key],
    [other, store.key],
    [path, store.key],
    [path, ''],
  ] as const) {
    statuses.push((await send(to, { 'x-api-key': key })).status);
  }
  expect(statuses).toEqual([202, 401, 202, 401, 202, 401]);
});

async function openIngress(options: Partial<Parameters<typeof createIngress>[0]>) {
  const store = createMemoryStore();
  const { memorySource } = store;
  const log = createLogger({ level: 'silent' });
  const ingress = createIngress({ store, memorySource, registry: createRegistry(), log, ...options });
  const port = await ingress.listen(0, '127.0.0.1');
  onTestFinished(ingress.close);
  const sent = { method: 'POST', headers: { 'x-api-key': store.key }, body: '{}' };
  return { store, send: () => fetch(`http://127.0.0.1:${port}/events/${store.tenant}/orders`, sent) };
}

test('an event starts a span while tracing is enabled', async () => {
  const names: string[] = [];
  const traceparent = `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`;
  const tracing: Tracing = {
    start(name) {
      names.push(name);
      return { traceId: '1'.repeat(32), traceparent, end: () => {} };
    },
    stop: async () => {},
  };
  const { store, send } = await openIngress({ tracing });
  expect((await send()).status).toBe(202);
  expect(names).toEqual(['POST /events/:tenant/:queue']);
  expect(store.stored.map(event => event.traceparent)).toEqual([traceparent]);
});

test('an error of the route results in 500', async () => {
  const { send } = await openIngress({
    rates: { perAddress: 1, perKey: 0, perWorkspace: 0 },
    addressOf: () => {
      throw new Error('no address');
    },
  });
  const answer = await send();
  expect([answer.status, answer.headers.get('content-type')]).toEqual([500, 'application/problem+json']);
  expect(await answer.json()).toMatchObject({ code: 'internal' });
});

test('an error after the response does not change the response', async () => {
  const counted: number[] = [];
  const answers = createAnswers({ countRequest: status => counted.push(status) }, () => false);
  const server = createServer((request, raw) => {
    const reply = { raw, request, hijack: () => {} };
    answers.sendAccepted(reply, 0, 'evt_1', false, undefined);
    answers.sendProblem(reply, 0, 'internal');
  }).listen(0, '127.0.0.1');
  onTestFinished(async () => void server.close());
  await once(server, 'listening');
  const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  expect([answer.status, await answer.json()]).toEqual([202, { id: 'evt_1', duplicate: false, groupKey: null }]);
  expect(counted).toEqual([202]);
});
