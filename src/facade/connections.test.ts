import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import {
  CATALOG,
  createFacadeServers,
  INTEGRATION,
  JSON_BODY,
  type StartedFacade,
  useFacadeServers,
} from '../../test/support/facade/facade-server.ts';
import { exchange, type RawAnswer } from '../../test/support/facade/raw-exchange.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { Refusal } from '../http/refusal.ts';
import type { Identity } from './auth/identity.ts';
import { MOST_WAITING } from './contract/waiting-calls.ts';

/** Enough for a busy machine. */
const SOON = { timeout: 20_000 };

const close = 'Connection: close';

const facades = useFacadeServers();
let started: StartedFacade;
let port: number;
beforeAll(async () => {
  const refuseStrangers = async (identity: Identity) => {
    if (identity.subject === 'stranger') throw new Refusal('forbidden');
  };
  const limits = { eventLoopDelayMs: 0, requestTimeoutMs: 2_000, headersTimeoutMs: 2_000 };
  started = await facades.start(limits, refuseStrangers);
  port = started.port;
});

const send = async (line: string, headers: readonly string[] = [], body = '', subject = 'ada') =>
  exchange(port, await facades.request(line, [close, ...headers], body, subject));

/** Writes bytes to a connection and returns the status of each response until the connection is closed. */
function statusesOf(bytes: string): Promise<number[]> {
  return new Promise(resolve => {
    let text = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    socket.on('data', chunk => (text += chunk.toString('latin1')));
    socket.on('error', () => {});
    socket.on('close', () => resolve([...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))));
  });
}

test('a client that sends many requests without waiting for their responses is disconnected', async () => {
  const gate = Promise.withResolvers<void>();
  let calls = 0;
  const { port: own, server } = await facades.start({ eventLoopDelayMs: 0 }, () => {
    calls++;
    return gate.promise;
  });
  const call = await facades.request(`GET ${CATALOG}`);
  const socket = connect(own, '127.0.0.1', () => socket.write(call.repeat(200)));
  socket.on('error', () => {});
  await new Promise(resolve => socket.once('close', resolve));
  expect(calls).toBeLessThan(2);
  gate.resolve();
  expect(await exchange(own, await facades.request(`GET ${CATALOG}`, [close]))).toMatchObject({ status: 200 });
  await server.close();
});

describe('browsers and caches', () => {
  test.each(['https://evil.example', 'null', 'http://x'])('a page of %s gets no permission', async origin => {
    for (const method of ['GET', 'OPTIONS']) {
      const preflight = ['Access-Control-Request-Method: PUT', 'Access-Control-Request-Headers: authorization'];
      const { headers } = await send(`${method} ${CATALOG}`, [`Origin: ${origin}`, ...preflight]);
      expect(Object.keys(headers).filter(name => name.startsWith('access-control'))).toEqual([]);
      expect(headers['cross-origin-resource-policy']).toBe('same-origin');
    }
  });

  test.each([
    'If-None-Match: *',
    'If-Match: "x"',
    'If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT',
    'Range: bytes=0-1',
    'If-Range: "x"',
  ])('%s does not change the answer', async header => {
    expect(await send(`GET ${CATALOG}`, [header])).toMatchObject({
      status: 200,
      body: expect.stringContaining('data'),
    });
  });

  test.each<[number, () => Promise<RawAnswer>]>([
    [200, () => send(`GET ${CATALOG}`)],
    [401, () => exchange(port, `GET ${CATALOG} HTTP/1.1\r\nHost: x\r\n\r\n`)],
    [403, () => send(`GET ${CATALOG}`, [], '', 'stranger')],
    [404, () => send('GET /waas/nothing')],
    [405, () => send(`PUT ${CATALOG}`)],
    [422, () => send(`GET ${CATALOG}?x=1`)],
    [415, () => send('PUT /waas/streams', ['Content-Length: 2'], '{}')],
    [413, () => send('PUT /waas/streams', [JSON_BODY, 'Content-Length: 9999999'])],
    [417, () => send('PUT /waas/streams', [JSON_BODY, 'Content-Length: 2', 'Expect: x'])],
    [431, () => send(`GET ${CATALOG}`, [`X-A: ${'a'.repeat(40_000)}`])],
    [400, () => exchange(port, 'GET / HTTP/9.9\r\n\r\n')],
    [408, () => exchange(port, 'GET / HTTP/1.1\r\nHost: x\r\n')],
  ])('no cache keeps a %i', async (status, call) => {
    const answer = await call();
    expect([answer.status, answer.headers['cache-control']]).toEqual([status, 'no-store']);
  });
});

describe('a connection', () => {
  test('requires a separate token for each call', async () => {
    const good = await facades.request(`GET ${CATALOG}`);
    const none = `GET ${CATALOG} HTTP/1.1\r\nHost: x\r\n\r\n`;
    const bad = `GET ${CATALOG} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x.y.z\r\n\r\n`;
    const last = await facades.request(`GET ${CATALOG}`, [close]);
    expect(await statusesOf(good + none + good + bad + last)).toEqual([200, 401, 200, 401, 200]);
  });

  test('does not accept a token that has expired since the last call', async () => {
    const token = await facades.issuer.sign({ exp: Math.floor(Date.now() / 1_000) + 2 });
    const bytes = `GET ${CATALOG} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`;
    const socket = connect(port, '127.0.0.1');
    let text = '';
    socket.on('data', chunk => (text += chunk.toString('latin1')));
    socket.write(bytes);
    await delay(2_200);
    socket.write(bytes);
    while ((text.match(/HTTP\/1\.1 /g) ?? []).length < 2) await delay(10);
    socket.destroy();
    expect([...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => status)).toEqual(['200', '401']);
  });

  test('does not treat a request in a body as a request', async () => {
    const inner = `DELETE ${CATALOG} HTTP/1.1\r\nHost: x\r\n\r\n`;
    const outer = await facades.request(`GET ${CATALOG}`, [JSON_BODY, `Content-Length: ${inner.length}`], inner);
    const last = await facades.request(`GET ${CATALOG}`, [close]);
    expect(await statusesOf(outer + last)).toEqual([200, 200]);
  });

  test.each([
    ['both lengths', ['Content-Length: 5', 'Transfer-Encoding: chunked'], '0\r\n\r\n'],
    ['two lengths', ['Content-Length: 2', 'Content-Length: 3'], '{}'],
    ['a signed length', ['Content-Length: +2'], '{}'],
    ['a length in hex', ['Content-Length: 0x2'], '{}'],
    ['chunked behind a tab', ['Transfer-Encoding:\tchunked, identity'], '0\r\n\r\n'],
    ['a folded header', ['X-A: 1', ' Transfer-Encoding: chunked'], ''],
    ['a space before the colon', ['Transfer-Encoding : chunked'], '0\r\n\r\n'],
  ])('with %s is refused', async (_, headers, body) => {
    const answer = await send('PUT /waas/streams', [JSON_BODY, ...headers], body);
    expect([400, 413, 415]).toContain(answer.status);
  });

  test('ignores a token in a trailer', async () => {
    const token = await facades.issuer.sign();
    const head = [
      'PUT /waas/streams HTTP/1.1',
      'Host: x',
      close,
      JSON_BODY,
      'Transfer-Encoding: chunked',
      'Trailer: Authorization',
    ];
    const bytes = `${head.join('\r\n')}\r\n\r\n0\r\nAuthorization: Bearer ${token}\r\n\r\n`;
    expect((await exchange(port, bytes)).status).toBe(401);
  });

  test('detects a second token after hundreds of headers, and refuses thousands of headers', async () => {
    const many = Array.from({ length: 900 }, () => 'a:b');
    const second = `Authorization: Bearer ${await facades.issuer.sign({ sub: 'eve' })}`;
    expect((await send(`GET ${CATALOG}`, many)).status).toBe(200);
    expect((await send(`GET ${CATALOG}`, [...many, second])).body).toContain('misplaced_token');
    expect(
      (
        await send(
          `GET ${CATALOG}`,
          Array.from({ length: 3_000 }, () => 'a:b'),
        )
      ).status,
    ).toBe(431);
  });

  test('responds to others if callers disconnect early or do not read anything', async () => {
    // A different caller, whose 1,200 calls require more points than a single burst.
    const bytes = await facades.request(`GET ${CATALOG}`, [], '', 'eve');
    const leaving = Array.from({ length: 200 }, (_, i) => {
      const socket = connect(port, '127.0.0.1', () => {
        socket.write(bytes.slice(0, i % 2 === 0 ? undefined : bytes.length - 1 - (i % 40)), () => socket.destroy());
      });
      socket.on('error', () => {});
      return socket;
    });
    const silent = Array.from({ length: 50 }, () => {
      const socket = connect(port, '127.0.0.1', () => void socket.pause().write(bytes.repeat(20)));
      return socket.on('error', () => {});
    });
    for (let i = 0; i < 20; i++) expect((await send(`GET ${CATALOG}`)).status).toBe(200);
    for (const socket of [...leaving, ...silent]) socket.destroy();
  });
});

test.each<[string, string]>([
  ['send nothing', ''],
  ['do not complete their headers', `GET ${CATALOG} HTTP/1.1\r\nX-A: `],
  ['do not complete their body', 'PUT /waas/streams HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{'],
])('clients that %s make room for others', async (_what, bytes) => {
  const limited = await facades.start({ eventLoopDelayMs: 0, connections: 3 }, undefined, ['127.0.0.0/8']);
  const idle = Array.from({ length: 3 }, () => connect(limited.port, '127.0.0.1').on('error', () => {}));
  let closed = 0;
  for (const socket of idle) socket.on('close', () => closed++);
  await Promise.all(idle.map(socket => once(socket, 'connect')));
  for (const socket of idle) socket.resume().write(bytes);
  expect((await exchange(limited.port, await facades.request(`GET ${CATALOG}`))).status).toBe(200);
  // Without the limit, they would be closed after 10 s.
  await vi.waitFor(() => expect(closed).toBe(1), { timeout: 5_000 });
  for (const socket of idle) socket.destroy();
});

test('clients whose calls are refused at a limited rate make room for others', async () => {
  const limits = { eventLoopDelayMs: 0, connections: 4, pointsPerMinute: 1 };
  const limited = await facades.start(limits, undefined, ['127.0.0.0/8']);
  const of = (address: string) => [`X-Forwarded-For: ${address}`];
  const refused = await facades.request(`GET ${CATALOG}`, of('192.0.2.1'), '', 'mallory');
  const sockets = Array.from({ length: 4 }, () => connect(limited.port, '127.0.0.1').on('error', () => {}));
  // The next request is already there when the response is sent, so that all connections wait for a response.
  for (const socket of sockets) socket.resume().write(refused.repeat(60));
  await Promise.all(sockets.map(socket => once(socket, 'data')));
  for (const name of ['ada', 'bob', 'eve']) {
    const other = await facades.request(`GET ${CATALOG}`, of('192.0.2.2'), '', name);
    expect((await exchange(limited.port, other)).status).toBe(200);
  }
  for (const socket of sockets) socket.destroy();
});

/** Starts an issuer that does not answer before `answer` is called, and a facade that trusts it. */
async function startBehindSlowIssuer(parts: object) {
  const { promise, resolve: answer } = Promise.withResolvers<void>();
  const server = createServer((_request, response) => {
    void promise.then(() => response.end(JSON.stringify({ issuer: url, jwks_uri: facades.issuer.keysUrl })));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const slow = createFacadeServers({
    ...facades.issuer,
    url,
    sign: claims => facades.issuer.sign({ iss: url, ...claims }),
  });
  const facade = await slow.start({ eventLoopDelayMs: 0 }, undefined, undefined, parts);
  const stop = async () => {
    await facade.server.close();
    server.closeAllConnections();
    server.close();
  };
  const inFlight = async () => {
    const gauge = await facade.registry.getSingleMetric('sluice_facade_requests_in_flight')?.get();
    return gauge?.values[0]?.value;
  };
  return { ...facade, request: slow.request, answer, inFlight, stop };
}

test('a client that leaves while it is authenticated does not wait for events', async () => {
  let reads = 0;
  const clock = createManualClock();
  const subscription = { metadata: { uid: 'u' }, spec: { producer: 'shop', integration: 'shop' } };
  const list = async () => {
    reads++;
    return { answer: 'OK', events: [], cursor: undefined };
  };
  const slow = await startBehindSlowIssuer({
    caches: { assertCurrent: () => undefined, find: async () => subscription, list: () => [] },
    clock,
    inboxes: { list },
  });
  const path = `/waas/integrations/${INTEGRATION}/events?subscription=sub_0123456789abcdefghjk&wait=20`;
  const bytes = await slow.request(`GET ${path}`, [close]);
  const leaving = Array.from({ length: MOST_WAITING }, () => connect(slow.port, '127.0.0.1'));
  for (const socket of leaving) socket.write(bytes);
  await vi.waitFor(async () => expect(await slow.inFlight()).toBe(MOST_WAITING), SOON);
  for (const socket of leaving) socket.destroy();
  await vi.waitFor(async () => expect(await slow.inFlight()).toBe(0), SOON);
  slow.answer();
  // The turn of this call comes after those of all earlier ones.
  expect((await exchange(slow.port, await slow.request(`GET ${CATALOG}`, [close]))).status).toBe(200);
  const read = reads;
  const answer = exchange(slow.port, bytes);
  await vi.waitFor(() => expect(reads).toBeGreaterThan(read), SOON);
  await clock.advance(20_000);
  expect((await answer).status).toBe(200);
  await slow.stop();
});
