import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, test, vi } from 'vitest';
import { LINGER_BYTES, MOST_TIMED_OUT } from './protocol-errors.ts';
import { createTestServer } from './testing/test-server.ts';

const CLIENTS = 10 * MOST_TIMED_OUT;

/** Enough for a busy machine. */
const SOON = { timeout: 20_000 };

test('connections that time out at the same time are closed in several iterations of the event loop', async () => {
  let inIteration = 0;
  const closed: number[] = [];
  const server = createTestServer({
    limits: { headersTimeoutMs: 1_000, requestTimeoutMs: 1_000 },
    onPlainAnswer: () => void inIteration++,
  });
  let isCounting = true;
  const count = () => {
    if (inIteration > 0) closed.push(inIteration);
    inIteration = 0;
    if (isCounting) setImmediate(count);
  };
  count();
  const port = await server.listen(0, '127.0.0.1');
  const clients = Array.from({ length: CLIENTS }, () => connect(port, '127.0.0.1'));
  const texts = clients.map(client => {
    const state = { text: '' };
    client.on('data', chunk => (state.text += chunk.toString('latin1'))).on('error', () => {});
    return state;
  });
  for (const client of clients) client.write('GET / HTTP/1.1\r\nX-A: ');
  await Promise.all(clients.map(client => once(client, 'close')));
  await vi.waitFor(() => expect(closed.reduce((sum, each) => sum + each, 0)).toBe(CLIENTS), SOON);
  expect(texts.filter(({ text }) => text.startsWith('HTTP/1.1 408 ')).length).toBe(CLIENTS);
  expect(Math.max(...closed)).toBeLessThanOrEqual(MOST_TIMED_OUT);
  isCounting = false;
  await server.close();
}, 60_000);

const HEAD = 'GET / HTTP/1.1\r\nHost: x\r\n';

/** Starts a server that does not respond, and sends bytes to it. The response is only read after all of them. */
async function send(bytes: Buffer, lingerTimeoutMs: number, ends = true) {
  const server = createTestServer({ limits: { lingerTimeoutMs } });
  server.serveFirst(() => {});
  const accepted = once(server.app.server, 'connection') as Promise<[Socket]>;
  const socket = connect({ port: await server.listen(0, '127.0.0.1'), host: '127.0.0.1', allowHalfOpen: true });
  const failures: string[] = [];
  socket.on('error', ({ code }: NodeJS.ErrnoException) => void failures.push(`${code}`));
  let text = '';
  socket.on('data', chunk => (text += chunk.toString('latin1'))).pause();
  const gone = new Promise(resolve => void socket.once('end', resolve).once('close', resolve));
  socket.write(bytes, () => {
    socket.resume();
    if (ends) socket.end();
  });
  const [connection] = await accepted;
  await once(connection, 'close');
  await gone;
  socket.destroy();
  await server.close();
  return { status: Number(/^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1]), isWhole: text.endsWith('}'), failures };
}

test.each([
  ['garbage', 'garbage\r\n\r\n', 400],
  ['headers that are too large', `${HEAD}A: `, 431],
  ['a chunk extension that is too large', `${HEAD}Transfer-Encoding: chunked\r\n\r\n1;`, 413],
])('a client that sends megabytes after %s receives the response', async (_what, start, status) => {
  const bytes = Buffer.concat([Buffer.from(start), Buffer.alloc(LINGER_BYTES / 2, 'a')]);
  expect(await send(bytes, 10_000)).toEqual({ status, isWhole: true, failures: [] });
});

test('a connection is closed if a refused client sends too much, or nothing for too long', async () => {
  const start = Buffer.from('garbage\r\n\r\n');
  const { failures } = await send(Buffer.concat([start, Buffer.alloc(3 * LINGER_BYTES, 'a')]), 60_000, false);
  expect(failures).not.toEqual([]);
  expect(await send(start, 100, false)).toEqual({ status: 400, isWhole: true, failures: [] });
});

test('a connection is closed without another response if half of a response has been sent', async () => {
  const server = createTestServer();
  server.serveFirst((_request, response) => {
    response.writeHead(200, { 'content-length': 8 });
    response.write('half');
  });
  const socket = connect(await server.listen(0, '127.0.0.1'), '127.0.0.1');
  let text = '';
  socket.on('data', chunk => (text += chunk.toString('latin1'))).on('error', () => {});
  const closed = new Promise(resolve => socket.once('close', resolve));
  socket.write(`${HEAD}Transfer-Encoding: chunked\r\n\r\n`);
  await vi.waitFor(() => expect(text).toMatch(/half$/), SOON);
  socket.write('not a chunk\r\n');
  await closed;
  expect(text.match(/HTTP\/1\.1/g)).toHaveLength(1);
  expect(text).toMatch(/half$/);
  await server.close();
});
