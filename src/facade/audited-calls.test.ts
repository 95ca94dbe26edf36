import { expect, test, vi } from 'vitest';
import { CATALOG, INTEGRATION, JSON_BODY, TENANT, useFacadeServers } from '../../test/support/facade/facade-server.ts';
import { exchange } from '../../test/support/facade/raw-exchange.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { Refusal } from '../http/refusal.ts';

const facades = useFacadeServers();

const start = (hold?: () => Promise<void>, trustedProxies?: readonly string[], parts?: object) =>
  facades.start({ eventLoopDelayMs: 0 }, hold, trustedProxies, parts);

const send = async (port: number, bytes: string) => exchange(port, Buffer.from(bytes));
const bare = (line: string, ...headers: string[]) =>
  `${[`${line} HTTP/1.1`, 'Host: x', 'Connection: close', ...headers].join('\r\n')}\r\n\r\n`;

test('a call without access is audited with its reason, network and route', async () => {
  const { port, audited, registry } = await start(async () => {
    throw new Refusal('forbidden');
  }, ['127.0.0.1/32']);
  await send(port, bare(`GET ${CATALOG}`, 'X-Forwarded-For: 192.0.2.77'));
  await send(port, bare('GET /waas/nothing', 'Authorization: Bearer x', 'X-Forwarded-For: 2001:db8:0:12::7'));
  await send(port, await facades.request(`GET ${CATALOG}`, ['Connection: close', 'X-Request-Id: chosen']));
  expect(audited).toMatchObject([
    { msg: 'refused call', status: 401, reason: 'missing', network: '192.0.2.0/24' },
    { msg: 'refused call', status: 401, reason: 'malformed', network: '2001:db8:0:12::/64' },
    { msg: 'refused call', status: 403, reason: 'forbidden', subject: 'ada', operation: 'listCatalog' },
  ]);
  expect(audited[2]?.['params']).toEqual({ tenant: expect.stringMatching(/^ten_/) });
  for (const { requestId } of audited) expect(requestId).toMatch(/^[0-9a-f-]{36}$/);
  const metric = await registry.getSingleMetric('sluice_facade_forbidden_total')?.get();
  expect(metric?.values.find(({ labels }) => labels['code'] === 'forbidden')?.value).toBe(1);
});

test('an event id in the path of a call without access is hidden if it may be an email address', async () => {
  const { port, audited } = await start(async () => {
    throw new Refusal('forbidden');
  });
  for (const id of ['order-1', 'ada@example.com', 'https://user:secret@shop.example/?token=secret']) {
    const path = `/waas/producer/${TENANT}/events/${encodeURIComponent(id)}`;
    expect((await send(port, await facades.request(`GET ${path}`, ['Connection: close']))).status).toBe(403);
  }
  expect(audited.map(({ params }) => (params as { eventId: string }).eventId)).toEqual([
    'order-1',
    expect.stringMatching(/^hmac:[0-9a-f]{32}$/),
    'https://shop.example',
  ]);
});

test('a call that waits for events is refused and audited if its caller loses access', async () => {
  const clock = createManualClock();
  const subscription = { metadata: { uid: 'u' }, spec: { producer: 'shop', integration: 'shop' } };
  let [hasAccess, reads] = [true, 0];
  const checkAccess = async () => {
    if (!hasAccess) throw new Refusal('forbidden');
  };
  const list = async () => ({ answer: 'OK', events: [], cursor: undefined, reads: ++reads });
  const { port, audited } = await start(checkAccess, undefined, {
    caches: { assertCurrent: () => undefined, get: () => undefined, find: async () => subscription, list: () => [] },
    clock,
    inboxes: { list },
  });
  const path = `/waas/integrations/${INTEGRATION}/events?subscription=sub_0123456789abcdefghjk&wait=20`;
  const answer = send(port, await facades.request(`GET ${path}`, ['Connection: close']));
  await vi.waitFor(() => expect(reads).toBe(1), { timeout: 20_000 });
  hasAccess = false;
  await clock.advance(500);
  expect((await answer).status).toBe(403);
  expect(reads).toBe(1);
  expect(audited).toMatchObject([{ msg: 'refused call', reason: 'forbidden', operation: 'listEvents' }]);
});

test('a call that waits for events ends with a 404 as soon as its subscription is deleted', async () => {
  const clock = createManualClock();
  const subscription = { metadata: { uid: 'u' }, spec: { producer: 'shop', integration: 'shop' } };
  let [exists, reads] = [true, 0];
  const read = async () => ({ answer: 'OK', events: [], cursor: undefined, more: false, reads: ++reads });
  const { port } = await start(undefined, undefined, {
    caches: {
      assertCurrent: () => undefined,
      get: () => undefined,
      find: async () => (exists ? subscription : undefined),
      list: () => [],
    },
    clock,
    inboxes: { list: read },
    operations: { pull: read },
  });
  const [root, id] = [`/waas/integrations/${INTEGRATION}`, 'sub_0123456789abcdefghjk'];
  const body = JSON.stringify({ subscription: id, waitSeconds: 20 });
  const requests = [
    await facades.request(`GET ${root}/events?subscription=${id}&wait=20`, ['Connection: close']),
    await facades.request(
      `POST ${root}/pull`,
      ['Connection: close', JSON_BODY, `Content-Length: ${body.length}`],
      body,
    ),
  ];
  const answers = requests.map(request => send(port, request));
  await vi.waitFor(() => expect(reads).toBe(2), { timeout: 20_000 });
  exists = false;
  await clock.advance(500);
  for (const answer of await Promise.all(answers)) {
    expect([answer.status, JSON.parse(answer.body).code]).toEqual([404, 'unknown_resource']);
  }
  expect(reads).toBe(2);
});

test('without trusted proxies, no network is written', async () => {
  const { port, audited } = await start();
  await send(port, bare(`GET ${CATALOG}`));
  expect(audited).toHaveLength(1);
  expect(audited[0]).not.toHaveProperty('network');
});

test('a call is audited once, with the request id of its answer and the trace of the caller; a read is not', async () => {
  const { port, audited } = await start();
  const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
  const headers = ['Connection: close', `traceparent: 00-${trace}-00f067aa0ba902b7-01`];
  await send(port, await facades.request(`GET ${CATALOG}`, headers));
  const body = '{"subscription":"sub_0123456789abcdefghjk","limit":1}';
  const more = [JSON_BODY, `Content-Length: ${body.length}`];
  const { headers: answered } = await send(
    port,
    await facades.request(`POST /waas/integrations/${INTEGRATION}/pull`, [...headers, ...more], body),
  );
  await vi.waitFor(() => expect(audited.length).toBeGreaterThan(0), { timeout: 20_000 });
  expect(audited).toHaveLength(1);
  expect(audited[0]).toMatchObject({
    operation: 'pullEvents',
    subject: 'ada',
    request: { subscription: 'sub_0123456789abcdefghjk', limit: 1 },
    about: { kind: 'Subscription', publicId: 'sub_0123456789abcdefghjk' },
    requestId: answered['x-request-id'],
    traceId: trace,
  });
});

test('a flood of bad tokens causes few lines', async () => {
  const { port, audited } = await start();
  for (let n = 0; n < 60; n++) await send(port, bare(`GET ${CATALOG}`, 'Authorization: Bearer x'));
  expect(audited.length).toBeLessThan(45);
  expect(audited.length).toBeGreaterThanOrEqual(20);
});
