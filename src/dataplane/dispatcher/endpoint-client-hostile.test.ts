import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { usedMemory } from '../../../test/support/used-memory.ts';
import { createEndpointClient, RESPONSE_BODY_MAX } from './endpoint-client.ts';
import { answer, startScriptedEndpoint } from './testing/scripted-endpoint.ts';

/** The times are real and short because a silent socket can only be tested with a real clock. */
const SHORT_MS = 80;
/** Enough for the status to arrive on a busy machine. */
const STATUS_MS = 500;

async function serve(
  script: Parameters<typeof startScriptedEndpoint>[0],
  options: Partial<Parameters<typeof createEndpointClient>[0]> = {},
) {
  const endpoint = await startScriptedEndpoint(script);
  const client = createEndpointClient({ allowedNetworks: ['127.0.0.0/8'], ...options });
  onTestFinished(endpoint.close);
  onTestFinished(client.close);
  const attempt = (timeoutMs = 5000, signal?: AbortSignal) =>
    client.attempt({ url: endpoint.url, headers: '', body: Buffer.from('{}'), timeoutMs }, signal);
  return { endpoint, client, attempt };
}

describe('invalid responses', () => {
  test.each<[string, string, string]>([
    ['garbage', 'SSH-2.0-OpenSSH_9.2\r\n', 'invalid_response'],
    ['a version from nowhere', 'HTTP/9.9 200 OK\r\n\r\n', 'invalid_response'],
    ['a status of letters', 'HTTP/1.1 abc OK\r\n\r\n', 'invalid_response'],
    ['a header without a name', 'HTTP/1.1 200 OK\r\n: x\r\n\r\n', 'invalid_response'],
    ['NUL in a header', 'HTTP/1.1 200 OK\r\nx: a\0b\r\n\r\n', 'invalid_response'],
    ['a length of letters', 'HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n', 'invalid_response'],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab', 'invalid_response'],
    ['an unexpected 101', 'HTTP/1.1 101 X\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n', 'invalid_response'],
    ['a 100 that is the only response', 'HTTP/1.1 100 Continue\r\n\r\nx', 'invalid_response'],
    [
      '1,000 headers of 64 bytes',
      `HTTP/1.1 200 OK\r\n${`x-filler: ${'y'.repeat(52)}\r\n`.repeat(1000)}\r\n`,
      'headers_too_large',
    ],
    ['a header of 64 KiB', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(65_536)}\r\n\r\n`, 'headers_too_large'],
  ])('%s', async (_name, text, reason) => {
    const { endpoint, attempt } = await serve((socket, { nth }) =>
      socket.write(nth === 1 ? text : answer(200), 'latin1'),
    );
    expect(await attempt()).toMatchObject({ outcome: 'failed', reason });
    await endpoint.lastConnectionEnded();
    expect(endpoint.requests).toHaveLength(1);
    // The client continues to work.
    expect(await attempt()).toMatchObject({ outcome: 'failed', reason });
    expect(endpoint.connections()).toBe(2);
  });

  test('a response can have 1,000 small headers', async () => {
    const headers = Array.from({ length: 1000 }, (_, i) => `x${i}: y`);
    const { attempt } = await serve(socket => socket.write(answer(200, headers)));
    expect(await attempt()).toMatchObject({ outcome: 'delivered' });
  });

  test('early hints before the response are ignored', async () => {
    const { attempt } = await serve(socket =>
      socket.write(`HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n${answer(503, ['retry-after: 3'])}`),
    );
    expect(await attempt()).toMatchObject({ outcome: 'failed', status: 503, retryAfterMs: 3000 });
  });

  test('endless early hints are limited by the timeout', async () => {
    const { attempt } = await serve(socket => {
      const timer = setInterval(() => socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'), 10);
      socket.on('close', () => clearInterval(timer));
    });
    expect(await attempt(SHORT_MS)).toMatchObject({ outcome: 'failed', reason: 'timeout' });
  });
});

describe('connections that end too early', () => {
  test('closed without a response', async () => {
    const { attempt } = await serve(socket => socket.end());
    const result = await attempt();
    expect(result).toMatchObject({ outcome: 'failed', reason: 'connection_reset', truncated: false });
    expect(result).not.toHaveProperty('status');
  });

  test('reset instead of a response, also for a reused connection: each attempt is a single request', async () => {
    const { endpoint, attempt } = await serve((socket, { nth }) =>
      nth === 1 ? socket.write(answer(200)) : socket.resetAndDestroy(),
    );
    expect(await attempt()).toMatchObject({ outcome: 'delivered' });
    expect(await attempt()).toMatchObject({ outcome: 'failed', reason: 'connection_reset' });
    expect(endpoint.requests).toHaveLength(2);
  });

  test('reset within the headers', async () => {
    const { attempt } = await serve(socket => socket.write('HTTP/1.1 200 OK\r\ncont', () => socket.resetAndDestroy()));
    expect(await attempt()).toMatchObject({ outcome: 'failed', reason: 'connection_reset' });
  });

  test.each([
    [200, 'delivered', 'http_2xx'],
    [410, 'disabled', 'gone'],
    [500, 'failed', 'http_5xx'],
  ])('cut off within the body: %i keeps its meaning', async (status, outcome, reason) => {
    const { attempt } = await serve(socket => socket.end(`HTTP/1.1 ${status} X\r\ncontent-length: 9\r\n\r\nhalf`));
    const result = await attempt();
    expect(result).toMatchObject({ outcome, reason, status, truncated: true });
    expect(result.responseBody.toString()).toBe('half');
  });

  test('invalid chunks after the status: the status is used, and the connection is not reused', async () => {
    const { endpoint, attempt } = await serve(socket =>
      socket.write('HTTP/1.1 500 X\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\nZZ\r\nabc'),
    );
    const result = await attempt();
    expect(result).toMatchObject({ reason: 'http_5xx', truncated: true });
    expect(result.responseBody.toString()).toBe('abc');
    await endpoint.lastConnectionEnded();
  });

  test('an additional response is never used for the next attempt', async () => {
    const { endpoint, attempt } = await serve(socket => {
      // In the worst case, both responses are received together, so the second one is there before the connection is
      // reused.
      socket.write(answer(500, [], 'mine') + answer(200, [], 'smuggled'));
    });
    expect(await attempt()).toMatchObject({ status: 500 });
    expect(await attempt()).toMatchObject({ status: 500 });
    expect(endpoint.connections()).toBe(2);
  });

  test('the connection is closed if there is another response later', async () => {
    const { endpoint, attempt } = await serve(
      socket => socket.write(answer(500), () => setTimeout(() => socket.write(answer(200)), 5)),
      { idleTimeoutMs: 60_000 },
    );
    expect(await attempt()).toMatchObject({ status: 500 });
    await endpoint.lastConnectionEnded();
    expect(await attempt()).toMatchObject({ status: 500 });
  });
});

describe('slow endpoints', () => {
  test('do not respond to the request', async () => {
    const { endpoint, attempt } = await serve(() => {});
    const result = await attempt(SHORT_MS);
    expect(result).toMatchObject({ outcome: 'failed', reason: 'timeout' });
    expect(result.latencyMs).toBeGreaterThanOrEqual(SHORT_MS - 2);
    await endpoint.lastConnectionEnded();
  });

  test('send headers one byte at a time', async () => {
    const { attempt } = await serve(socket => {
      const bytes = 'HTTP/1.1 200 OK\r\nx-slow: yes, very much so\r\n\r\n'.split('');
      const timer = setInterval(() => socket.write(bytes.shift() ?? 'x'), 5);
      socket.on('close', () => clearInterval(timer));
    });
    expect(await attempt(SHORT_MS)).toMatchObject({ outcome: 'failed', reason: 'timeout' });
  });

  test('send a body one byte at a time: the attempt ends with the timeout and keeps the status', async () => {
    const { endpoint, attempt } = await serve(socket => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n');
      const timer = setInterval(() => socket.write('x'), 5);
      socket.on('close', () => clearInterval(timer));
    });
    expect(await attempt(STATUS_MS)).toMatchObject({ outcome: 'delivered', reason: 'http_2xx', truncated: true });
    await endpoint.lastConnectionEnded();
  });

  test('send an endless body: it is cut off after 16 KiB, and the connection is closed', async () => {
    let written = 0;
    const { endpoint, attempt } = await serve(socket => {
      socket.write('HTTP/1.1 500 X\r\ntransfer-encoding: chunked\r\n\r\n');
      const chunk = `400\r\n${'x'.repeat(1024)}\r\n`;
      const pour = () => {
        while (!socket.destroyed && socket.write(chunk)) written += chunk.length;
      };
      socket.on('drain', pour);
      pour();
    });
    const result = await attempt();
    expect(result).toMatchObject({ outcome: 'failed', reason: 'http_5xx', truncated: true });
    expect(result.responseBody).toHaveLength(RESPONSE_BODY_MAX);
    await endpoint.lastConnectionEnded();
    // This includes the data buffered by the kernel, but not an endless stream.
    expect(written).toBeLessThan(32 * 1024 * 1024);
  });

  test('send a body in chunks of one byte, which only takes the memory of its bytes', async () => {
    const text = 'abcdefg'.repeat(2_340);
    const chunks = [...text].map(letter => `1\r\n${letter}\r\n`).join('');
    const sockets: Socket[] = [];
    const { attempt } = await serve(socket => {
      socket.write(`HTTP/1.1 500 X\r\ntransfer-encoding: chunked\r\n\r\n${chunks}`, () => sockets.push(socket));
    });
    const before = usedMemory();
    const attempts = Array.from({ length: 16 }, () => attempt(20_000));
    await expect.poll(() => sockets.length, { timeout: 10_000 }).toBe(16);
    await delay(500);
    expect(usedMemory() - before).toBeLessThan(16 * 256 * 1024);
    for (const socket of sockets) socket.write('0\r\n\r\n');
    for (const { responseBody } of await Promise.all(attempts)) expect(responseBody.toString()).toBe(text);
  });

  test('have a name that never resolves: this is a connect timeout, even if the timeout of the attempt is shorter', async () => {
    const client = createEndpointClient({ allowedNetworks: [], connectTimeoutMs: SHORT_MS, resolveName: () => {} });
    onTestFinished(client.close);
    const request = { url: 'https://never.test/', headers: '', body: Buffer.alloc(1) };
    expect(await client.attempt(request)).toMatchObject({ outcome: 'failed', reason: 'connect_timeout' });
    expect(await client.attempt({ ...request, timeoutMs: SHORT_MS / 4 })).toMatchObject({ reason: 'connect_timeout' });
  });

  test('do not receive anything if the process was suspended while connecting, even if the connection is open', async () => {
    const { endpoint, attempt } = await serve(socket => socket.write(answer(200)), { connectTimeoutMs: SHORT_MS });
    // After timers, Node checks for open connections, and only then for timers that are due.
    await delay(1);
    const result = attempt();
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3 * SHORT_MS);
    expect(await result).toMatchObject({ outcome: 'failed', reason: 'connect_timeout' });
    expect(endpoint.requests).toHaveLength(0);
  });

  test('do not receive anything if the connection opened too late, and it is kept for the next attempt', async () => {
    const { endpoint, client } = await serve(socket => socket.write(answer(200)));
    const request = { url: endpoint.url, headers: '', body: Buffer.from('{}') };
    const asked: number[] = [];
    const unsent = await client.attempt({ ...request, maySend: () => asked.push(endpoint.connections()) < 0 });
    expect(unsent).toMatchObject({ isUnsent: true });
    expect(await client.attempt({ ...request, maySend: () => false })).toMatchObject({ outcome: 'delivered' });
    expect(asked).toHaveLength(1);
    expect(endpoint.connections()).toBe(1);
    expect(endpoint.requests).toHaveLength(1);
  });

  test('do not receive a request later because it is reset if there is no response in time', async () => {
    const ended: string[] = [];
    const { endpoint, attempt } = await serve(socket => {
      socket.on('error', (error: NodeJS.ErrnoException) => ended.push(String(error.code)));
      socket.on('end', () => ended.push('end'));
    });
    expect(await attempt(SHORT_MS)).toMatchObject({ outcome: 'failed', reason: 'timeout' });
    await endpoint.lastConnectionEnded();
    expect(ended).toEqual(['ECONNRESET']);
  });

  test('are not reset if they responded early because they may still be reading the request', async () => {
    const ended: string[] = [];
    const { endpoint, attempt } = await serve(socket => {
      socket.on('error', (error: NodeJS.ErrnoException) => ended.push(String(error.code)));
      socket.on('end', () => ended.push('end'));
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n');
    });
    expect(await attempt(STATUS_MS)).toMatchObject({ outcome: 'delivered', truncated: true });
    await endpoint.lastConnectionEnded();
    expect(ended).toEqual(['end']);
  });

  test('fail if they close each connection that opened too late, instead of never receiving anything', async () => {
    const { endpoint, client } = await serve(() => {});
    const server = createServer(socket => socket.on('error', () => {}).end());
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(async () => void server.close());
    const { port } = server.address() as AddressInfo;
    const request = { url: `http://127.0.0.1:${port}/`, headers: '', body: Buffer.from('{}'), maySend: () => false };
    const both = () => Promise.all([client.attempt(request), client.attempt(request)]);
    for (const first of await both()) expect(first).toMatchObject({ isUnsent: true });
    await delay(SHORT_MS);
    for (const second of await both()) {
      expect(second).toMatchObject({ outcome: 'failed', reason: 'connection_reset' });
      expect(second.isUnsent).toBeUndefined();
    }
    // Other endpoints are not affected.
    expect(await client.attempt({ ...request, url: endpoint.url })).toMatchObject({ isUnsent: true });
  });

  test('an abort ends the attempt and the connection', async () => {
    const abort = new AbortController();
    const { endpoint, attempt } = await serve(() => abort.abort());
    expect(await attempt(5000, abort.signal)).toMatchObject({ outcome: 'failed', reason: 'aborted' });
    await endpoint.lastConnectionEnded();
    expect(await attempt(5000, abort.signal)).toMatchObject({ outcome: 'failed', reason: 'aborted' });
    expect(endpoint.requests).toHaveLength(1);
  });
});

describe('unreachable endpoints', () => {
  test('a closed port', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    const port = typeof address === 'object' ? address?.port : 0;
    server.close();
    await once(server, 'close');
    const client = createEndpointClient({ allowedNetworks: ['127.0.0.0/8'] });
    onTestFinished(client.close);
    const result = await client.attempt({ url: `http://127.0.0.1:${port}/`, headers: '', body: Buffer.alloc(1) });
    expect(result).toMatchObject({ outcome: 'failed', reason: 'connection_refused' });
  });

  test.each(['ENOTFOUND', 'EAI_AGAIN'])('a name that resolves to %s', async code => {
    const client = createEndpointClient({
      allowedNetworks: [],
      resolveName: (_name, _options, done) => done(Object.assign(new Error(code), { code }), []),
    });
    onTestFinished(client.close);
    const result = await client.attempt({ url: 'https://gone.test/', headers: '', body: Buffer.alloc(1) });
    expect(result).toMatchObject({ outcome: 'failed', reason: 'dns_failed' });
  });
});
