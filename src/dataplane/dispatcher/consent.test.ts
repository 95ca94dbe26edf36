import type { Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { AGREED_MS, createAskConsent, REFUSED_MS, UNREACHED_MS } from './consent.ts';
import { createEndpointClient } from './endpoint-client.ts';
import { answer, startScriptedEndpoint } from './testing/scripted-endpoint.ts';

const ORIGIN = 'events.example.com';

/** An endpoint that responds according to `script`, and a function that asks it for consent. Uses a manual clock. */
async function serve(script: (socket: Socket) => void) {
  const endpoint = await startScriptedEndpoint(script);
  const client = createEndpointClient({ allowedNetworks: ['127.0.0.0/8'] });
  onTestFinished(endpoint.close);
  onTestFinished(client.close);
  const clock = { nowMs: 0 };
  const { attempt } = client;
  const askConsent = createAskConsent({ attempt, origin: ORIGIN, version: '1.2.3', monotonicMs: () => clock.nowMs });
  const ask = (url = endpoint.url, headers = {}) => askConsent({ url, timeoutMs: 500, headers });
  return { endpoint, ask, clock };
}

const allow = (value: string) => [`webhook-allowed-origin: ${value}`];
const says =
  (status: number, headers: string[] = [], body = '') =>
  (socket: Socket) =>
    void socket.write(answer(status, headers, body));

test('the request is an OPTIONS request with the origin and the headers of the endpoint', async () => {
  const { endpoint, ask } = await serve(says(200, allow(ORIGIN)));
  await ask(`${endpoint.url}?a=b`, { Authorization: 'Bearer x', 'webhook-request-origin': 'forged.example' });
  const [request] = endpoint.requests;
  expect(request?.head.split('\r\n')).toEqual([
    'OPTIONS /hook?a=b HTTP/1.1',
    `host: 127.0.0.1:${endpoint.port}`,
    'connection: keep-alive',
    'user-agent: sluice/1.2.3',
    `webhook-request-origin: ${ORIGIN}`,
    'authorization: Bearer x',
    'content-length: 0',
  ]);
  expect(request?.body).toHaveLength(0);
});

test.each([
  ['its name', 200, allow(ORIGIN)],
  ['its name in upper case', 204, ['WebHook-Allowed-Origin: EVENTS.EXAMPLE.COM']],
  ['any name', 202, allow('*')],
])('an endpoint agrees with %s', async (_, status, headers) => {
  const { ask } = await serve(says(status, headers));
  expect(await ask()).toBeUndefined();
});

test.each([
  ['no name', 200, []],
  ['an empty name', 200, allow('')],
  ['another name', 200, allow('other.example')],
  ['a name that begins like it', 200, allow(`${ORIGIN}.evil.example`)],
  ['a list of names', 200, allow(`${ORIGIN}, other.example`)],
  ['the header of CORS', 200, ['access-control-allow-origin: *']],
  ['403', 403, allow('*')],
  ['405', 405, ['allow: POST']],
  ['410', 410, allow(ORIGIN)],
  ['a redirect', 307, [...allow(ORIGIN), 'location: http://127.0.0.1:1/']],
  ['500', 500, allow(ORIGIN)],
])('an endpoint does not agree with %s', async (_, status, headers) => {
  const { ask } = await serve(says(status, headers, 'said by whoever owns it'));
  const refused = await ask();
  expect(refused).toMatchObject({ outcome: 'failed', reason: 'consent_missing', truncated: false });
  expect(refused).not.toHaveProperty('status');
  expect(refused?.responseBody).toHaveLength(0);
});

test('a header of an informational response is ignored', async () => {
  const { ask } = await serve(socket => {
    socket.write(`HTTP/1.1 103 Hints\r\nwebhook-allowed-origin: *\r\n\r\n${answer(200)}`);
  });
  expect(await ask()).toMatchObject({ reason: 'consent_missing' });
});

describe('an endpoint only receives a few requests', () => {
  test('for any number of events that wait at the same time', async () => {
    const { endpoint, ask } = await serve(says(200));
    const answers = await Promise.all(Array.from({ length: 500 }, () => ask()));
    expect(answers.every(each => each?.reason === 'consent_missing')).toBe(true);
    expect(endpoint.requests).toHaveLength(1);
  });

  test.each([
    ['an hour after it agreed', says(200, allow('*')), AGREED_MS],
    ['a minute after it did not', says(200), REFUSED_MS],
    ['five seconds after it broke the connection', (socket: Socket) => socket.destroy(), UNREACHED_MS],
  ])('the next request is sent %s', async (_, script, keptMs) => {
    const { endpoint, ask, clock } = await serve(script);
    const first = await ask();
    clock.nowMs = keptMs - 1;
    expect(await ask()).toEqual(first);
    expect(endpoint.requests).toHaveLength(1);
    clock.nowMs = keptMs;
    await ask();
    expect(endpoint.requests).toHaveLength(2);
  });

  test('for each address and set of headers', async () => {
    const { endpoint, ask } = await serve(says(200, allow('*')));
    for (const headers of [{}, { a: '1' }, { a: '2' }, {}]) await ask(endpoint.url, headers);
    await ask(`${endpoint.url}/other`);
    expect(endpoint.requests).toHaveLength(4);
  });

  test('until it changes its response', async () => {
    let agrees = true;
    const { ask, clock } = await serve(socket => void socket.write(answer(200, agrees ? allow('*') : [])));
    expect(await ask()).toBeUndefined();
    agrees = false;
    clock.nowMs = AGREED_MS;
    expect(await ask()).toMatchObject({ reason: 'consent_missing' });
  });
});

test('an endpoint that does not respond fails within its timeout, and does not delay others', async () => {
  const { endpoint, ask } = await serve(() => {});
  const other = await startScriptedEndpoint(says(200, allow('*')));
  onTestFinished(other.close);
  const hanging = Array.from({ length: 100 }, () => ask());
  const order: string[] = [];
  const all = Promise.all(hanging).then(() => order.push('hanging'));
  for (let i = 0; i < 10; i++) expect(await ask(`${other.url}/${i}`)).toBeUndefined();
  order.push('others');
  await all;
  expect(order).toEqual(['others', 'hanging']);
  expect(await hanging[0]).toMatchObject({ outcome: 'failed', reason: 'timeout' });
  expect(endpoint.requests).toHaveLength(1);
});

test('an address that is not allowed is not contacted', async () => {
  const { ask } = await serve(says(200, allow('*')));
  expect(await ask('http://10.0.0.1/')).toMatchObject({ reason: 'address_refused' });
});
