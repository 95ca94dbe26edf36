import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  CATALOG,
  JSON_BODY as json,
  problemOf,
  TENANT,
  useFacadeServers,
} from '../../test/support/facade/facade-server.ts';
import { exchange } from '../../test/support/facade/raw-exchange.ts';

const facades = useFacadeServers();
const { start, request } = facades;
/** A server that is not modified by any test. */
let port: number;
beforeAll(async () => {
  ({ port } = await start({ eventLoopDelayMs: 0 }));
  await facades.untilAnswering(port);
});

const MIB = 1_048_576;

describe('requests that are too large or have the wrong type', () => {
  test('refuses a body above 1 MiB before it is sent', async () => {
    const answer = await exchange(port, await request('PUT /waas/streams', [json, `Content-Length: ${MIB + 1}`]));
    expect(problemOf(answer)).toBe('413 body_too_large');
  });

  test('refuses a body above 16 KiB if a call does not accept a list or a schema', async () => {
    const line = `POST /waas/producer/${TENANT}/packages`;
    const answer = await exchange(port, await request(line, [json, 'Content-Length: 16385']));
    expect(problemOf(answer)).toBe('413 body_too_large');
    expect(answer.body).toContain('16,384 bytes');
    const body = `"${'x'.repeat(16_382)}"`;
    expect(problemOf(await exchange(port, await request(line, [json, 'Content-Length: 16384'], body)))).toBe(
      '422 invalid_request',
    );
  });

  test('refuses a query of more than 64 parameters before checking the token', async () => {
    const query = Array.from({ length: 65 }, (_, n) => `p${n}`).join('&');
    const answer = await exchange(port, `GET ${CATALOG}?${query} HTTP/1.1\r\nHost: x\r\n\r\n`);
    expect(problemOf(answer)).toBe('400 malformed_request');
    expect(answer.body).toContain('64 parameters');
  });

  test('refuses a path and a query of more than 8,192 characters before parsing them', async () => {
    const get = (length: number) => `GET ${CATALOG}?`.padEnd('GET '.length + length, '&');
    const answer = await exchange(port, `${get(8_193)} HTTP/1.1\r\nHost: x\r\n\r\n`);
    expect(problemOf(answer)).toBe('414 uri_too_long');
    expect(answer.body).toContain('8,192 characters');
    expect(answer.headers).toMatchObject({ 'x-request-id': expect.any(String), 'x-content-type-options': 'nosniff' });
    expect((await exchange(port, await request(get(8_192)))).status).toBe(200);
  });

  test('refuses a chunked body that becomes too large', async () => {
    const chunk = `${(MIB + 1).toString(16)}\r\n${'x'.repeat(MIB + 1)}\r\n0\r\n\r\n`;
    const answer = await exchange(
      port,
      await request('PUT /waas/streams', [json, 'Transfer-Encoding: chunked'], chunk),
    );
    expect(problemOf(answer)).toBe('413 body_too_large');
  });

  test('accepts a body of exactly 1 MiB', async () => {
    const body = `"${'x'.repeat(MIB - 2)}"`;
    const answer = await exchange(port, await request('PUT /waas/streams', [json, `Content-Length: ${MIB}`], body));
    expect(problemOf(answer)).toBe('422 invalid_request');
  });

  test('refuses headers above 32 KiB', async () => {
    const answer = await exchange(port, await request(`GET ${CATALOG}`, [`X-Long: ${'y'.repeat(40_000)}`]));
    expect(problemOf(answer)).toBe('431 headers_too_large');
    expect((await exchange(port, await request(`GET ${CATALOG}`, [`X-Long: ${'y'.repeat(25_000)}`]))).status).toBe(200);
  });

  test.each([
    ['text', ['Content-Type: text/plain', 'Content-Length: 2'], '415 unsupported_media_type'],
    ['a form', ['Content-Type: application/x-www-form-urlencoded', 'Content-Length: 2'], '415 unsupported_media_type'],
    ['no content type', ['Content-Length: 2'], '415 unsupported_media_type'],
    ['an expectation', [json, 'Content-Length: 2', 'Expect: something'], '417 expectation_failed'],
  ])('refuses %s', async (_what, headers, expected) => {
    expect(problemOf(await exchange(port, await request('PUT /waas/streams', headers, '{}')))).toBe(expected);
  });

  test('refuses a body that is not JSON with the header to send', async () => {
    const headers = ['Content-Type: text/plain', 'Content-Length: 2'];
    const answer = await exchange(port, await request('PUT /waas/streams', headers, '{}'));
    expect(answer.body).toContain('Send a JSON body with the header Content-Type: application/json.');
  });

  test('refuses null as a body', async () => {
    const line = `POST /waas/producer/${TENANT}/packages/pkg_0123456789abcdefghjk/archive`;
    expect(problemOf(await exchange(port, await request(line, [json, 'Content-Length: 4'], 'null')))).toBe(
      '422 invalid_request',
    );
  });
});

describe('requests that take too long', () => {
  /** Returns the data received by a connection until the server closed it, and the time until then. */
  function untilClosed(port: number, bytes: string): Promise<{ readonly text: string; readonly tookMs: number }> {
    const startedMs = performance.now();
    return new Promise(resolve => {
      let text = '';
      const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
      socket.on('data', chunk => (text += chunk.toString('latin1')));
      socket.on('error', () => undefined);
      socket.on('close', () => resolve({ text, tookMs: performance.now() - startedMs }));
    });
  }

  test('are cut off if the headers do not end', async () => {
    const { port } = await start({ headersTimeoutMs: 300, requestTimeoutMs: 600 });
    const { text, tookMs } = await untilClosed(port, `GET ${CATALOG} HTTP/1.1\r\nHost: x\r\nX-Slow: `);
    expect(text).toMatch(/^HTTP\/1\.1 408 /);
    expect(tookMs).toBeLessThan(6_000);
  });

  test('are closed without a response if nothing is sent', async () => {
    const { port } = await start({ headersTimeoutMs: 300, requestTimeoutMs: 600 });
    const { text, tookMs } = await untilClosed(port, '');
    expect(text).toBe('');
    expect(tookMs).toBeLessThan(6_000);
  });

  test('are cut off if the body does not arrive', async () => {
    const { port } = await start({ headersTimeoutMs: 300, requestTimeoutMs: 600 });
    const bytes = await request('PUT /waas/streams', [json, 'Content-Length: 10'], '{');
    const { text, tookMs } = await untilClosed(port, bytes);
    expect(text).toMatch(/^HTTP\/1\.1 408 /);
    expect(text).toContain('request_timeout');
    expect(tookMs).toBeLessThan(6_000);
  });
});

describe('methods and headers', () => {
  test.each(['OPTIONS', 'PATCH', 'QUERY', 'TRACE'])('%s of a path that only supports GET', async method => {
    const answer = await exchange(port, await request(`${method} ${CATALOG}`));
    expect(answer.status).toBe(405);
    expect(answer.headers['allow']).toBe('GET, HEAD');
    expect(problemOf(answer)).toBe('405 method_not_allowed');
  });

  test('the root contains the page of the reference', async () => {
    const answer = await exchange(port, await request('GET /'));
    expect(problemOf(answer)).toBe('404 not_found');
    expect(answer.body).toContain('Open /docs');
    expect(answer.headers['link']).toContain('</docs>; rel="service-doc"');
    expect((await exchange(port, await request('GET /docs'))).status).toBe(200);
  });

  test('neither the reference nor its document is served if it is turned off', async () => {
    const started = await start({ servesReference: false, eventLoopDelayMs: 0 });
    await facades.untilAnswering(started.port);
    for (const path of ['/', '/docs', '/docs/', '/docs/json', '/docs/static/index.css', '/openapi.json']) {
      const answer = await exchange(started.port, await request(`GET ${path}`));
      expect([path, problemOf(answer)]).toEqual([path, '404 not_found']);
      expect(answer.body).not.toContain('Open /docs');
    }
  });

  test('the page of the reference loads its own files, including over http', async () => {
    const page = await exchange(port, await request('GET /docs/'));
    const policy = page.headers['content-security-policy'] ?? '';
    expect(policy).toContain("script-src 'self'");
    expect(policy).not.toMatch(/upgrade-insecure-requests|https?:|swagger\.io/);
    const files = [...page.body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, file]) => file as string);
    expect(files.length).toBeGreaterThan(3);
    for (const file of files) {
      const target = new URL(file, 'http://x/docs/').pathname;
      expect([target, (await exchange(port, await request(`GET ${target}`))).status]).toEqual([target, 200]);
    }
    expect(page.body).not.toMatch(/<script(?![^>]*\bsrc=)[^>]*>/);
    const styles = files.filter(file => file.endsWith('.css'));
    expect(styles.length).toBeGreaterThan(0);
    for (const file of styles) {
      const { body } = await exchange(port, await request(`GET ${new URL(file, 'http://x/docs/').pathname}`));
      const loaded = [...body.matchAll(/url\(["']?([^"')]+)|@import\s+["']?([^"']+)/g)].map(
        ([, url = '', sheet = '']) => url + sheet,
      );
      expect(loaded.filter(url => !url.startsWith('data:') && !url.startsWith('#'))).toEqual([]);
    }
    // This is the document that the page shows.
    const start = await exchange(port, await request('GET /docs/static/swagger-initializer.js'));
    expect(start.body).toContain('./json');
    const shown = await exchange(port, await request('GET /docs/json'));
    expect(JSON.parse(shown.body).paths).toEqual(
      JSON.parse((await exchange(port, await request('GET /openapi.json'))).body).paths,
    );
  });

  test('the page does not allow other origins, and no upgrade to https over http', async () => {
    for (const target of ['/docs/', '/docs/static/index.html', '/docs/static/swagger-initializer.js']) {
      const policy = (await exchange(port, await request(`GET ${target}`))).headers['content-security-policy'] ?? '';
      const sources = policy.split(';').flatMap(directive => directive.trim().split(/\s+/).slice(1));
      const own = ["'self'", "'none'", "'unsafe-inline'", 'data:'];
      expect(sources.filter(source => !own.includes(source))).toEqual([]);
      expect(policy).toContain("default-src 'none'");
      expect(policy).not.toContain('upgrade-insecure-requests');
    }
  });

  test('the document has an ETag, and is not sent again if it matches', async () => {
    const read = async (init?: RequestInit) => {
      const answer = await fetch(`http://127.0.0.1:${port}/openapi.json`, init);
      return { status: answer.status, etag: answer.headers.get('etag') ?? '', text: await answer.text() };
    };
    const { etag, text } = await read();
    expect(etag).toMatch(/^"[\w-]{22}"$/);
    expect(text).toContain('"openapi":"3.1');
    for (const field of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      expect(await read({ headers: { 'if-none-match': field } })).toEqual({ status: 304, etag, text: '' });
    }
    for (const field of ['"other"', etag.slice(1, -1)]) {
      expect(await read({ headers: { 'if-none-match': field } })).toEqual({ status: 200, etag, text });
    }
    expect(await read({ method: 'HEAD' })).toEqual({ status: 200, etag, text: '' });
  });

  test('every response has security headers and does not reveal the software', async () => {
    for (const target of [CATALOG, '/waas/nothing', '/openapi.json', '/nothing']) {
      const { headers } = await exchange(port, await request(`GET ${target}`));
      expect(headers).toMatchObject({
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'SAMEORIGIN',
        'referrer-policy': 'no-referrer',
        'x-request-id': expect.stringMatching(/^[0-9a-f-]{36}$/),
      });
      expect(Object.keys(headers)).not.toContain('strict-transport-security');
      expect(Object.keys(headers)).not.toContain('x-powered-by');
      expect(Object.keys(headers)).not.toContain('server');
    }
    const { headers } = await exchange(port, await request(`GET ${CATALOG}`, ['X-Request-Id: mine']));
    expect(headers['cache-control']).toBe('no-store');
    expect(headers['x-request-id']).not.toBe('mine');
  });
});

describe('too many calls', () => {
  test('one caller is limited, with Retry-After, and does not limit others', async () => {
    const { port } = await start({ pointsPerMinute: 3 });
    const call = async (subject: string) => exchange(port, await request(`GET ${CATALOG}`, [], '', subject));
    for (const left of [2, 1, 0]) {
      const { status, headers } = await call('ada');
      expect({ status, policy: headers['ratelimit-policy'], limit: headers['ratelimit'] }).toEqual({
        status: 200,
        policy: '"caller";q=3;w=60, "account";q=5000;w=10',
        limit: expect.stringMatching(`^"caller";r=${left};t=\\d+, "account";r=\\d+;t=\\d+$`),
      });
    }
    const refused = await call('ada');
    expect(problemOf(refused)).toBe('429 rate_limited');
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(60);
    expect(refused.headers['ratelimit']).toMatch(/^"caller";r=0;t=\d+$/);
    expect((await call('eve')).status).toBe(200);
  });

  test('a call beyond the limit is refused before its body arrives', async () => {
    const { port } = await start({ pointsPerMinute: 1, requestTimeoutMs: 60_000 });
    expect((await exchange(port, await request(`GET ${CATALOG}`))).status).toBe(200);
    const never = await request('PUT /waas/streams', [json, `Content-Length: ${MIB}`]);
    expect(problemOf(await exchange(port, never))).toBe('429 rate_limited');
  });

  test('calls of one caller do not affect those of others', { timeout: 60_000 }, async () => {
    const { port } = await start();
    const hostile = `[${'0,'.repeat(MIB / 2 - 2)}0]`;
    const headers = [json, `Content-Length: ${hostile.length}`];
    const attack = await request('PUT /waas/streams', headers, hostile, 'eve');
    const calm = await request(`GET ${CATALOG}`);
    await facades.untilAnswering(port);
    const attacks = Array.from({ length: 24 }, () => exchange(port, attack));
    for (let calls = 0; calls < 50; calls++) expect((await exchange(port, calm)).status).toBe(200);
    const answers = await Promise.all(attacks);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([413]));
  });

  test('a process that cannot keep up refuses calls, and accepts them again later', async () => {
    const { port } = await start({ eventLoopDelayMs: 40, eventLoopSampleMs: 1_000 });
    const get = async () => exchange(port, await request(`GET ${CATALOG}`));
    expect((await get()).status).toBe(200);
    let busy = true;
    const work = async () => {
      while (busy) {
        const untilMs = performance.now() + 150;
        while (performance.now() < untilMs);
        await delay(1);
      }
    };
    const working = work();
    let shed = await get();
    for (let tries = 0; tries < 40 && shed.status === 200; tries++) shed = await get();
    busy = false;
    await working;
    expect(problemOf(shed)).toBe('503 overloaded');
    expect(shed.headers['retry-after']).toBe('1');
    let again = await get();
    for (let tries = 0; tries < 40 && again.status !== 200; tries++) {
      await delay(100);
      again = await get();
    }
    expect(again.status).toBe(200);
  });

  test('a single pause of the process does not refuse calls', async () => {
    const { port } = await start({ eventLoopDelayMs: 1_000 });
    // Blocks the process for longer than a second, as if it were not scheduled.
    const untilMs = performance.now() + 1_500;
    while (performance.now() < untilMs);
    const statuses = new Set<number>();
    for (let calls = 0; calls < 20; calls++) {
      statuses.add((await exchange(port, await request(`GET ${CATALOG}`))).status);
      await delay(10);
    }
    expect(statuses).toEqual(new Set([200]));
  });
});

describe('closing', () => {
  const open = (port: number): Promise<Socket> =>
    new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () => resolve(socket));
      socket.once('error', reject);
    });
  const closed = (socket: Socket) => new Promise<void>(resolve => void socket.once('close', () => resolve()));

  test('completes calls in progress, closes idle connections, and refuses new ones', async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    let calls = 0;
    const { server, port } = await start({}, async () => {
      if (calls++ === 0) return;
      begin();
      await released;
    });
    const idle = await open(port);
    const idleEnds = closed(idle);
    idle.write(await request(`GET ${CATALOG}`));
    await new Promise(resolve => idle.once('data', resolve));
    const answer = exchange(port, await request(`GET ${CATALOG}`, ['Connection: keep-alive']));
    await begun;
    const closing = server.close();
    await idleEnds;
    await expect(open(port)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    release();
    const { status, body } = await answer;
    expect({ status, body }).toEqual({ status: 200, body: '{"data":[],"nextCursor":null}' });
    await closing;
  });

  test('waits for a call whose client has disconnected, so that it is audited', async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const { server, port, audited } = await start({}, async () => {
      begin();
      await released;
    });
    const client = await open(port);
    client.write(await request(`DELETE /waas/producer/${TENANT}/ingress-keys/old`));
    await begun;
    client.destroy();
    const auditedAtEnd = server.close().then(() => audited.map(({ operation }) => operation));
    await delay(50);
    release();
    expect(await auditedAtEnd).toEqual(['deleteIngressKey']);
  });

  test('aborts calls that do not end in time', async () => {
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const { server, port } = await start({ drainTimeoutMs: 200 }, () => {
      begin();
      return new Promise(() => undefined);
    });
    const answer = exchange(port, await request(`GET ${CATALOG}`));
    await begun;
    const startedMs = performance.now();
    await server.close();
    expect(performance.now() - startedMs).toBeLessThan(6_000);
    expect((await answer).status).toBe(0);
  });
});
