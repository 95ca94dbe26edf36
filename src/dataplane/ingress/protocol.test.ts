import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createChoices } from '../../../test/support/random.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createRegistry } from '../../telemetry/metrics.ts';
import { createIngress } from './server.ts';
import { createMemoryStore } from './testing/memory-store.ts';

const store = createMemoryStore();
const ingress = createIngress({
  store,
  memorySource: store.memorySource,
  registry: createRegistry(),
  log: createLogger({ level: 'silent' }),
  limits: { headersTimeoutMs: 50, requestTimeoutMs: 100, drainTimeoutMs: 100 },
});
let port = 0;
beforeAll(async () => {
  port = await ingress.listen(0, '127.0.0.1');
});
afterAll(() => ingress.close());

/** Writes bytes to a new connection. Resolves to all received data when the server has closed the connection. */
function exchange(bytes: string | Buffer, half = true): Promise<string> {
  return new Promise(resolve => {
    let got = '';
    const socket = connect(port, '127.0.0.1', () => (half ? socket.end(bytes) : socket.write(bytes)));
    socket.on('data', chunk => {
      got += chunk.toString('latin1');
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(got));
  });
}

const target = `/events/${store.tenant}/orders`;
const key = `x-api-key: ${store.key}\r\n`;
const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0);

const eventBytes = (id: string, more = '') =>
  `POST ${target} HTTP/1.1\r\nHost: x\r\n${key}webhook-id: ${id}\r\n${more}Content-Length: 2\r\n\r\nok`;

describe('invalid HTTP', () => {
  test.each([
    ['garbage', 'hello\r\n\r\n', 400],
    [
      'two Hosts',
      `POST ${target} HTTP/1.1\r\nHost: x\r\nhOST: y\r\n${key}Content-Length: 2\r\nConnection: close\r\n\r\nok`,
      400,
    ],
    ['no Host', `POST ${target} HTTP/1.1\r\n${key}Content-Length: 0\r\nConnection: close\r\n\r\n`, 400],
    [
      'two lengths',
      `POST ${target} HTTP/1.1\r\nHost: x\r\n${key}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`,
      400,
    ],
    [
      'length and chunks',
      `POST ${target} HTTP/1.1\r\nHost: x\r\n${key}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      400,
    ],
    ['broken chunk', `POST ${target} HTTP/1.1\r\nHost: x\r\n${key}Transfer-Encoding: chunked\r\n\r\nzz\r\n`, 400],
    ['huge headers', `POST ${target} HTTP/1.1\r\nHost: x\r\nA: ${'a'.repeat(20_000)}\r\n\r\n`, 431],
    ['NUL in a header', `POST ${target} HTTP/1.1\r\nHost: x\r\nA: \0\r\n\r\n`, 400],
    [
      'another expectation',
      `POST ${target} HTTP/1.1\r\nHost: x\r\n${key}Expect: tea\r\nContent-Length: 0\r\n\r\n`,
      417,
    ],
  ])('%s results in a problem document', async (_, bytes, status) => {
    const answer = await exchange(bytes, false);
    expect(statusOf(answer)).toBe(status);
    expect(answer.toLowerCase()).toContain('content-type: application/problem+json');
    expect(answer.toLowerCase()).toContain('connection: close');
    expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4))).toMatchObject({ status });
    expect(store.stored).toEqual([]);
  });

  test('a header section that does not end results in 408', async () => {
    expect(statusOf(await exchange(`POST ${target} HTTP/1.1\r\nHost: x\r\n`, false))).toBe(408);
  });

  test('a body that does not end results in 408, and nothing is stored', async () => {
    const answer = await exchange(`POST ${target} HTTP/1.1\r\nHost: x\r\n${key}Content-Length: 9\r\n\r\nabc`, false);
    expect(statusOf(answer)).toBe(408);
    expect(store.stored).toEqual([]);
  });

  test('refuses a compressed body with 415 before it has been received', async () => {
    const answer = await exchange(
      `POST ${target} HTTP/1.1\r\nHost: x\r\n${key}Content-Encoding: gzip\r\nContent-Length: 9\r\n\r\n`,
      false,
    );
    expect(statusOf(answer)).toBe(415);
    expect(store.stored).toEqual([]);
  });

  test.each([
    ['gzip, chunked', 415],
    ['chunked, gzip', 400],
    ['gzip\r\nTransfer-Encoding: chunked', 415],
    ['identity, chunked', 415],
  ])('Transfer-Encoding: %s is %i, and nothing is stored', async (coding, status) => {
    const zipped = gzipSync('{}');
    const head = `POST ${target} HTTP/1.1\r\nHost: x\r\n${key}Connection: close\r\nTransfer-Encoding: ${coding}\r\n\r\n`;
    const chunk = [`${zipped.length.toString(16)}\r\n`, zipped, '\r\n0\r\n\r\n'].map(part => Buffer.from(part));
    const answer = await exchange(Buffer.concat([Buffer.from(head), ...chunk]), false);
    expect(statusOf(answer)).toBe(status);
    expect(answer.toLowerCase()).toContain('content-type: application/problem+json');
    expect(store.stored).toEqual([]);
  });

  test('refuses a body without a clear end, and everything after it', async () => {
    const after = eventBytes('after');
    const answer = await exchange(
      `POST ${target} HTTP/1.1\r\nHost: x\r\n${key}Transfer-Encoding: gzip\r\n\r\n${after}`,
      false,
    );
    // The parser detects this with the first byte of the body. If the key is known, the response has already been sent.
    expect([400, 415]).toContain(statusOf(answer));
    expect(answer).not.toContain('after');
    expect(store.stored).toEqual([]);
  });

  test('Transfer-Encoding: Chunked is accepted in any case', async () => {
    const chunked = `webhook-id: any-case\r\nConnection: close\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`;
    expect(statusOf(await exchange(`POST ${target} HTTP/1.1\r\nHost: x\r\n${key}${chunked}`, false))).toBe(202);
    expect(store.stored.splice(0).map(({ id }) => id)).toEqual(['any-case']);
  });

  test('a sender that disconnects during a body does not leave any data', async () => {
    await exchange(`POST ${target} HTTP/1.1\r\nHost: x\r\n${key}Content-Length: 9\r\n\r\nabc`);
    expect(store.stored).toEqual([]);
  });
});

test('garbage behind a good request does not take the place of its response', async () => {
  const good = `POST ${target} HTTP/1.1\r\nHost: x\r\n${key}webhook-id: g\r\nContent-Length: 2\r\n\r\nok`;
  const gate = Promise.withResolvers<void>();
  store.hold = gate.promise;
  const answer = exchange(`${good}garbage\r\n\r\n`, false);
  setImmediate(gate.resolve);
  expect(statusOf(await answer)).toBe(202);
  store.hold = undefined;
});

test('100-continue and pipelining are supported', async () => {
  expect(await exchange(eventBytes('c', 'Expect: 100-continue\r\nConnection: close\r\n'))).toMatch(
    /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 202/,
  );
  const answer = await exchange(eventBytes('p1') + eventBytes('p2') + eventBytes('p3', 'Connection: close\r\n'), false);
  expect([...answer.matchAll(/"id":"(p\d)"/g)].map(match => match[1])).toEqual(['p1', 'p2', 'p3']);
});

test.each([
  ['no key', 401, target, '', 2],
  ['a body that is too large', 413, target, key, 300_000],
  ['a compressed body', 415, target, `${key}Content-Encoding: gzip\r\n`, 2],
  ['an unknown stream', 404, target.replace('orders', 'none'), key, 2],
])('a request that waits for 100 Continue with %s is refused without it', async (_what, status, path, more, bytes) => {
  const head = `POST ${path} HTTP/1.1\r\nHost: x\r\n${more}Expect: 100-continue\r\nContent-Length: ${bytes}\r\n\r\n`;
  expect(statusOf(await exchange(head, false))).toBe(status);
});

/** The number of malformed requests. `make test-api` sends 50,000. */
const MALFORMED = Number(process.env['MALFORMED'] || 2_000);

test(`continues after ${MALFORMED} malformed requests without any 5xx`, {
  timeout: 60_000 + MALFORMED * 20,
}, async () => {
  const { below, pick } = createChoices(7);
  const pieces = [
    '%',
    '%00',
    '%2f',
    '..',
    '//',
    ';',
    '?',
    '#',
    '\0',
    '\t',
    '\xff',
    '\xc3\x28',
    '"',
    '{',
    ',',
    ', ',
    'a',
  ];
  const junk = (most: number): string => Array.from({ length: below(most) }, () => pick(pieces)).join('');
  const names = [
    'x-sluice-group-key',
    'ce-partitionkey',
    'ce-id',
    'webhook-id',
    'x-sluice-event-type',
    'traceparent',
    'content-type',
    'expect',
    'connection',
    'transfer-encoding',
    'content-length',
    'authorization',
    '__proto__',
    'constructor',
    'accept-version',
    'upgrade',
  ];
  const make = (): Buffer => {
    const path = pick([
      target,
      target,
      `${target}?${junk(5)}`,
      `/events/${junk(4)}/orders`,
      `/${junk(6)}`,
      `${target}${junk(2)}`,
    ]);
    const method = pick(['POST', 'POST', 'POST', 'GET', 'PUT', 'QUERY', 'PROPFIND', 'CONNECT', 'X']);
    const headers = Array.from({ length: below(4) }, () => {
      return `${pick(names)}: ${pick([junk(4), 'chunked', 'application/cloudevents+json', '5', 'h2c'])}\r\n`;
    });
    const body = pick(['', '{}', '{"id":1,"partitionkey":[]}', '5\r\nhello\r\n0\r\n\r\n', junk(9)]);
    const length = below(3) === 0 ? '' : `content-length: ${body.length}\r\n`;
    const host = below(9) === 0 ? '' : 'host: x\r\n';
    const version = pick(['HTTP/1.1', 'HTTP/1.1', 'HTTP/1.0', 'HTTP/2.0', '']);
    const head = `${method} ${path} ${version}\r\n${host}${below(5) === 0 ? '' : key}${headers.join('')}${length}\r\n`;
    return Buffer.from(head + body, 'latin1');
  };
  const seen = new Map<number, number>();
  const failed: string[] = [];
  for (let round = 0; round < MALFORMED / 50; round++) {
    const answers = await Promise.all(
      Array.from({ length: 50 }, async () => {
        const bytes = make();
        return { bytes, answer: await exchange(bytes) };
      }),
    );
    for (const { bytes, answer } of answers) {
      const status = statusOf(answer);
      seen.set(status, (seen.get(status) ?? 0) + 1);
      if (status >= 500) failed.push(bytes.toString('latin1'));
    }
  }
  expect(failed).toEqual([]);
  // Makes sure that the requests reach all parts of the code.
  const often = [...seen].filter(([, count]) => count > 10).map(([status]) => status);
  expect(often).toEqual(expect.arrayContaining([202, 400, 401, 404, 405, 422]));
  const good = `POST ${target} HTTP/1.1\r\nHost: x\r\n${key}Content-Length: 0\r\nConnection: close\r\n\r\n`;
  expect(statusOf(await exchange(good))).toBe(202);
});
