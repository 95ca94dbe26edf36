import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import type { HttpServer } from './server.ts';
import { createTestServer } from './testing/test-server.ts';

const REQUEST = 'GET /held HTTP/1.1\r\nHost: x\r\n\r\n';
const INCOMPLETE = 'POST /held HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc';

let server: HttpServer;
afterEach(() => server.close());

/** Starts a server that holds the response to each request, and writes bytes to a connection. */
async function start(bytes: string) {
  const held: ServerResponse[] = [];
  server = createTestServer({ limits: { headersTimeoutMs: 200, requestTimeoutMs: 200, drainTimeoutMs: 1_000 } });
  server.serveFirst((_request, response) => void held.push(response));
  const failures: string[] = [];
  server.app.server.on('clientError', ({ code }: NodeJS.ErrnoException) => failures.push(`${code}`));
  const socket = connect(await server.listen(0, '127.0.0.1'), '127.0.0.1');
  let text = '';
  socket.on('data', chunk => (text += chunk.toString('latin1')));
  socket.on('error', () => {});
  const closed = once(socket, 'close');
  socket.write(bytes);
  return {
    held,
    failures,
    socket,
    statuses: async () => {
      await closed;
      return [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
    },
  };
}

test.each([
  ['is malformed', 'garbage\r\n\r\n', 'HPE_INVALID_METHOD', 400],
  ['has headers that are too large', `${REQUEST.trimEnd()}\r\nA: ${'a'.repeat(2_000)}`, 'HPE_HEADER_OVERFLOW', 431],
  ['has a body that never ends', INCOMPLETE, 'ERR_HTTP_REQUEST_TIMEOUT', 408],
  ['has headers that never end', REQUEST.slice(0, -2), 'ERR_HTTP_REQUEST_TIMEOUT', 408],
])('earlier requests get their responses if a later one %s', async (_what, later, failure, status) => {
  const { held, failures, socket, statuses } = await start(REQUEST.repeat(2) + later);
  await vi.waitFor(() => expect(failures).toContain(failure), { timeout: 10_000 });
  // More bytes after the failure change nothing.
  socket.write('more');
  for (const response of held.slice(0, 2)) response.end('done');
  expect(await statuses()).toEqual([200, 200, status]);
});

test.each([
  ['is incomplete', INCOMPLETE, 4],
  ['is malformed', 'garbage\r\n\r\n', 3],
])('all responses are closed if the client leaves and the last request %s', async (_what, last, requests) => {
  const { held, socket } = await start(REQUEST.repeat(3) + last);
  await vi.waitFor(() => expect(held.length).toBe(requests));
  const closed = Promise.all(held.map(response => once(response, 'close')));
  socket.destroy();
  await closed;
});
