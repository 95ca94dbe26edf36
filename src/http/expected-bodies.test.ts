import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import type { HttpServer } from './server.ts';
import { createTestServer } from './testing/test-server.ts';

let server: HttpServer;
afterEach(() => server.close());

/** Starts a server that refuses requests to /refused and /late, and reads the bodies of all but the first. */
async function start() {
  let count = 0;
  server = createTestServer();
  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    count++;
    await delay(20);
    if (request.url === '/refused') return void response.writeHead(401).end('refused');
    if (request.url === '/late') response.writeHead(401).write('refused, ');
    const body = await buffer(request);
    response.end(`read ${body}`);
  }
  server.serveFirst((request, response) => void serve(request, response));
  const port = await server.listen(0, '127.0.0.1');
  const socket = connect(port, '127.0.0.1');
  let text = '';
  socket.on('data', chunk => (text += chunk.toString('latin1')));
  const closed = once(socket, 'close');
  return {
    socket,
    requests: () => count,
    /** Returns the statuses of all responses, once the connection is closed. */
    statuses: async () => {
      await closed;
      return [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
    },
    received: () => text,
  };
}

const head = (path: string, more = '') =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n${more}\r\n`;

test('a client that waits for 100 Continue only gets it when its body is read', async () => {
  const { socket, statuses, received } = await start();
  socket.write(head('/', 'Connection: close\r\n'));
  await once(socket, 'data');
  expect(received()).toBe('HTTP/1.1 100 Continue\r\n\r\n');
  socket.write('ok');
  expect(await statuses()).toEqual([100, 200]);
  expect(received()).toContain('read ok');
});

test('a refused client gets the response without 100 Continue, and its connection is closed', async () => {
  const { socket, statuses, received } = await start();
  socket.write(head('/refused'));
  expect(await statuses()).toEqual([401]);
  expect(received()).toMatch(/\r\nConnection: close\r\n/i);
});

test('100 Continue is never sent within a response', async () => {
  const { socket, statuses, received } = await start();
  socket.write(head('/late'));
  await once(socket, 'data');
  socket.write('ok');
  expect(await statuses()).toEqual([401]);
  expect(received()).toContain('refused');
});

test('a refused client can send its body, and requests behind it are not processed', async () => {
  const { socket, statuses, requests } = await start();
  socket.write(head('/refused'));
  await once(socket, 'data');
  socket.write(`ok${head('/')}ok`);
  expect(await statuses()).toEqual([401]);
  expect(requests()).toBe(1);
});
