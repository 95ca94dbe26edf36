import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type AttemptResult, createEndpointClient } from './endpoint-client.ts';
import { answer, startScriptedEndpoint } from './testing/scripted-endpoint.ts';

async function serve(...[script]: Parameters<typeof startScriptedEndpoint>) {
  const endpoint = await startScriptedEndpoint(script);
  const client = createEndpointClient({ allowedNetworks: ['127.0.0.0/8'] });
  onTestFinished(endpoint.close);
  onTestFinished(client.close);
  const attempt = (path: string | number = '', body = Buffer.from('{}')) =>
    client.attempt({ url: `${endpoint.url}/${path}`, headers: '', body, timeoutMs: 5_000 });
  return { endpoint, attempt };
}

/** Returns the number at the end of a request's path. */
const numberIn = (head: string) => Number(/\/(\d+) HTTP/.exec(head)?.[1]);
const upTo = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i);

const said = ({ outcome, reason, status, truncated }: AttemptResult) =>
  `${outcome} ${reason} ${status ?? '-'}${truncated ? ' truncated' : ''}`;

describe('every status', { timeout: 30_000 }, () => {
  test('from 200 to 599 is delivered, failed, or disables the endpoint', async () => {
    const { endpoint, attempt } = await serve((socket, { head }) => socket.write(answer(numberIn(head))));
    const expected = (status: number) => {
      if (status < 300) return `delivered http_2xx ${status}`;
      if (status < 400) return `failed redirect ${status}`;
      if (status === 410) return 'disabled gone 410';
      return `failed http_${Math.floor(status / 100)}xx ${status}`;
    };
    const statuses = upTo(200, 599);
    const results = [];
    for (const status of statuses) results.push(said(await attempt(status)));
    expect(results).toEqual(statuses.map(expected));
    expect(endpoint.requests).toHaveLength(400);
    // The connection is kept for every status.
    expect(endpoint.connections()).toBe(1);
  });

  test('skips informational responses except for 101 and uses the next response', async () => {
    const { attempt } = await serve((socket, { head }) => {
      const announcement = `HTTP/1.1 ${numberIn(head)} Soon\r\nretry-after: 9\r\n\r\n`;
      socket.write(announcement.repeat(3) + answer(503, ['retry-after: 3']));
    });
    for (const status of [100, ...upTo(102, 199)]) {
      expect(await attempt(status)).toMatchObject({ outcome: 'failed', status: 503, retryAfterMs: 3_000 });
    }
  });

  test('refuses 101 and statuses that do not exist, and does not read the following data', async () => {
    const { endpoint, attempt } = await serve((socket, { head }) => {
      const upgrade = 'connection: upgrade\r\nupgrade: x\r\n';
      socket.write(`HTTP/1.1 ${String(numberIn(head)).padStart(3, '0')} X\r\n${upgrade}\r\n${answer(200)}`);
    });
    for (const status of [101, 0, 99]) {
      expect(said(await attempt(status))).toBe('failed invalid_response -');
      await endpoint.lastConnectionEnded();
    }
  });

  test('does not follow a 3xx with any Location', async () => {
    const trap = await serve(socket => socket.write(answer(200)));
    const locations = [
      trap.endpoint.url,
      `//127.0.0.1:${trap.endpoint.port}/`,
      `http://localhost:${trap.endpoint.port}/`,
      `http://[::1]:${trap.endpoint.port}/`,
      '/elsewhere',
      '?again',
      '',
    ];
    const { endpoint, attempt } = await serve((socket, { head }) => {
      const n = numberIn(head);
      socket.write(answer(n, [`location: ${locations[n % locations.length]}`, 'refresh: 0; url=/elsewhere']));
    });
    for (const status of upTo(300, 399)) expect(said(await attempt(status))).toBe(`failed redirect ${status}`);
    expect(trap.endpoint.connections()).toBe(0);
    expect(endpoint.requests).toHaveLength(100);
  });
});

describe('a response that is cut off at any byte', { timeout: 30_000 }, () => {
  const chunked = 'HTTP/1.1 500 X\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n0\r\n\r\n';
  test.each([
    ['a success with a length', answer(200, ['x-a: b'], 'hello'), 'delivered http_2xx 200'],
    ['a failure in chunks', chunked, 'failed http_5xx 500'],
    ['the end of an endpoint', answer(410), 'disabled gone 410'],
  ])('%s: if the headers are incomplete, this is a reset; otherwise, the status is used', async (_name, text, kept) => {
    const headersEnd = text.indexOf('\r\n\r\n') + 4;
    const { endpoint, attempt } = await serve((socket, { head }) => {
      const n = numberIn(head);
      if (n === 0) socket.resetAndDestroy();
      else socket.write(text.slice(0, n), () => setImmediate(() => socket.resetAndDestroy()));
    });
    for (let bytes = 0; bytes < text.length; bytes++) {
      const expected = bytes < headersEnd ? 'failed connection_reset -' : `${kept} truncated`;
      expect(`${bytes}: ${said(await attempt(bytes))}`).toBe(`${bytes}: ${expected}`);
    }
    expect(said(await attempt(text.length))).toBe(kept);
    // Each attempt is a single request because the endpoint may have processed it.
    expect(endpoint.requests).toHaveLength(text.length + 1);
  });
});

describe('a response that arrives before the request was read', () => {
  test.each([
    [200, 'delivered http_2xx 200'],
    [413, 'failed http_4xx 413'],
  ])('%i is used, and the connection is not reused', async (status, expected) => {
    const unread: Socket[] = [];
    const server = createServer(socket => {
      unread.push(socket);
      socket.on('error', () => {}).pause();
      socket.write(answer(status));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const client = createEndpointClient({ allowedNetworks: ['127.0.0.0/8'] });
    onTestFinished(() => new Promise(resolve => server.close(() => resolve())));
    onTestFinished(client.close);
    onTestFinished(async () => unread.forEach(socket => socket.destroy()));
    // This is more than the buffers of both kernels.
    const body = Buffer.alloc(16 * 1024 * 1024);
    for (let n = 0; n < 2; n++) {
      const result = await client.attempt({ url: `http://127.0.0.1:${port}/`, headers: '', body, timeoutMs: 4_000 });
      expect(said(result)).toBe(expected);
    }
    expect(unread).toHaveLength(2);
  });
});

describe('a connection that ends between two requests', () => {
  test.each(['end', 'resetAndDestroy'] as const)('(%s) is replaced, and no attempt fails', async how => {
    const { endpoint, attempt } = await serve(socket => {
      socket.write(answer(200), () => setImmediate(() => socket[how]()));
    });
    for (let n = 1; n <= 20; n++) {
      expect(said(await attempt())).toBe('delivered http_2xx 200');
      await endpoint.lastConnectionEnded();
      // The end is detected in a turn of the event loop after it was sent.
      await nextTurn();
      await nextTurn();
    }
    expect(endpoint.connections()).toBe(20);
    expect(endpoint.requests).toHaveLength(20);
  });

  test('soon after each response, without an announcement, only fails the first attempt that reuses one', async () => {
    const { endpoint, attempt } = await serve((socket, { nth }) => {
      // A later request is lost because the server has already decided to close the connection.
      if (nth === 1) socket.write(answer(200));
      else socket.end();
    });
    const results: string[] = [];
    for (let n = 0; n < 10; n++) results.push(said(await attempt()));
    const delivered = Array.from({ length: 8 }, () => 'delivered http_2xx 200');
    expect(results).toEqual(['delivered http_2xx 200', 'failed connection_reset -', ...delivered]);
    expect(endpoint.connections()).toBe(9);
  });

  test('some time after a response does not affect other connections', async () => {
    const { endpoint, attempt } = await serve(socket => socket.write(answer(200)));
    expect(said(await attempt())).toBe('delivered http_2xx 200');
    await delay(150);
    endpoint.closeConnections();
    await endpoint.lastConnectionEnded();
    await nextTurn();
    await nextTurn();
    for (let n = 0; n < 3; n++) expect(said(await attempt())).toBe('delivered http_2xx 200');
    expect(endpoint.connections()).toBe(2);
  });

  test.each(['connection: close', 'keep-alive: timeout=1'])('is not reused after "%s"', async header => {
    const { endpoint, attempt } = await serve(socket => socket.write(answer(200, [header])));
    for (let n = 0; n < 3; n++) expect(said(await attempt())).toBe('delivered http_2xx 200');
    expect(endpoint.connections()).toBe(3);
  });
});

describe('headers without a limit', () => {
  test.each([
    ['one of 1 MiB', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(1024 * 1024)}\r\n\r\n`],
    ['1,000 of 1 KiB', `HTTP/1.1 200 OK\r\n${`x-filler: ${'y'.repeat(1_012)}\r\n`.repeat(1_000)}\r\n`],
    ['a reason phrase of 1 MiB', `HTTP/1.1 200 ${'y'.repeat(1024 * 1024)}\r\n\r\n`],
    ['20,000 announcements', 'HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n'.repeat(20_000)],
  ])('%s: reading stops early', async (_name, text) => {
    const { endpoint, attempt } = await serve(socket => socket.write(text, 'latin1'));
    const { outcome, reason } = await attempt();
    expect([outcome, reason]).toEqual(['failed', 'headers_too_large']);
    await endpoint.lastConnectionEnded();
  });

  const chunked = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
  test.each([
    ['trailers', `${chunked}0\r\n`, `x-t: ${'y'.repeat(1_000)}\r\n`],
    ['an extension of a chunk', `${chunked}1;a=`, 'y'.repeat(1_000)],
    ['chunks of one byte that are all extension', chunked, `1;a=${'y'.repeat(1_000)}\r\nx\r\n`],
  ])('%s without an end: the response is cut off, and the status is used', async (_name, beginning, endless) => {
    let written = 0;
    const { endpoint, attempt } = await serve(socket => {
      socket.write(beginning);
      const pour = () => {
        while (!socket.destroyed && socket.write(endless)) written += endless.length;
      };
      socket.on('drain', pour);
      pour();
    });
    expect(said(await attempt())).toBe('delivered http_2xx 200 truncated');
    await endpoint.lastConnectionEnded();
    // This includes the data buffered by the kernel, but not an endless stream.
    expect(written).toBeLessThan(32 * 1024 * 1024);
  });
});

test('a server that starts with HTTP/2 does not return a response', async () => {
  const { attempt } = await serve(socket => socket.write(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0])));
  expect(said(await attempt())).toBe('failed invalid_response -');
});
