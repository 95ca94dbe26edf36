import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { createAuthority } from '../../test/support/certificates.ts';
import { type TemporaryFolder, temporaryFolder } from '../../test/support/temporary-folder.ts';
import { usedMemory } from '../../test/support/used-memory.ts';
import type { HttpServer } from './server.ts';
import { createTestServer } from './testing/test-server.ts';

/** More than the buffers of both sockets can hold. */
const BODY = Buffer.alloc(32 * 1024 * 1024);
const HEAD = `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${BODY.length}\r\n`;

let folder: TemporaryFolder;
let certificate: { cert: string; key: string };
beforeAll(async () => {
  folder = await temporaryFolder('last-responses');
  const { cert, key } = await (await createAuthority(folder.path)).issue('server', 'IP:127.0.0.1');
  certificate = { cert: await readFile(cert, 'utf8'), key: await readFile(key, 'utf8') };
});
afterAll(() => folder.remove());

let server: HttpServer;
afterEach(() => server.close());

/** Starts a server that refuses each request when its headers have arrived, with a response header. */
async function start(header: Record<string, string>, limits = {}, certificateOrNone = {}): Promise<number> {
  server = createTestServer({ limits, ...certificateOrNone });
  server.serveFirst((_request, response) => {
    response.writeHead(413, { 'content-length': 7, ...header });
    response.end('refused');
  });
  return server.listen(0, '127.0.0.1');
}

/** Sends all parts before it closes the connection, in the same way as a client that only reads afterwards. */
async function exchange(socket: Socket, ...parts: (string | Buffer)[]) {
  let text = '';
  const errors: string[] = [];
  socket.on('data', chunk => (text += chunk.toString('latin1')));
  socket.on('error', (error: NodeJS.ErrnoException) => void errors.push(`${error.code}`));
  const closed = once(socket, 'close');
  for (const part of parts) socket.write(part);
  socket.end();
  await closed;
  return { errors, status: Number(/^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1]), isWhole: text.endsWith('refused') };
}

const REFUSED = { errors: [], status: 413, isWhole: true };

describe('a client that is refused can send the rest of its body, and receives the response', () => {
  test.each([
    ['the client', 'Connection: close\r\n', {}],
    ['the server', '', { connection: 'close' }],
  ])('if %s wants to close the connection', async (_who, sent, header) => {
    const socket = connect({ port: await start(header), host: '127.0.0.1', allowHalfOpen: true });
    expect(await exchange(socket, `${HEAD}${sent}\r\n`, BODY)).toEqual(REFUSED);
  });

  test('if TLS is used', async () => {
    const port = await start({ connection: 'close' }, {}, { certificate });
    const transport = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    const socket = connectTls({ socket: transport, rejectUnauthorized: false });
    await once(socket, 'secureConnect');
    expect(await exchange(socket, `${HEAD}\r\n`, BODY)).toEqual(REFUSED);
  });
});

test('a connection is closed if the rest does not arrive in time, or if the client leaves', async () => {
  const port = await start({ connection: 'close' }, { headersTimeoutMs: 1_000, requestTimeoutMs: 1_000 });
  for (const leaves of [false, true]) {
    const accepted = once(server.app.server, 'connection') as Promise<[Socket]>;
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    socket.write(`${HEAD}\r\nabc`);
    const [connection] = await accepted;
    const closed = once(connection, 'close');
    await once(socket, 'data');
    expect(connection.destroyed).toBe(false);
    if (leaves) socket.destroy();
    await closed;
    socket.destroy();
  }
});

test.each([
  ['closed', { connection: 'close' }],
  ['kept open', {}],
])('a refused client cannot hold a connection that is %s with an incomplete body', async (_what, header) => {
  const port = await start(header, { lingerTimeoutMs: 100, requestTimeoutMs: 60_000 });
  const accepted = once(server.app.server, 'connection') as Promise<[Socket]>;
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 999\r\n\r\nabc');
  const [connection] = await accepted;
  const drip = setInterval(() => socket.write('x'), 40);
  await once(connection, 'close');
  clearInterval(drip);
  socket.destroy();
});

test('refused requests whose rest has arrived leave nothing behind on a connection that is kept open', async () => {
  const port = await start({});
  const accepted = once(server.app.server, 'connection') as Promise<[Socket]>;
  const socket = connect(port, '127.0.0.1');
  const [connection] = await accepted;
  const before = connection.listenerCount('close');
  for (let i = 0; i < 20; i++) {
    socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nabc');
    await once(socket, 'data');
    socket.write('d');
  }
  await vi.waitFor(() => expect(connection.listenerCount('close')).toBe(before));
  socket.destroy();
});

test('a connection is kept open if the rest of a refused request arrives in time', async () => {
  const socket = connect(await start({}, { lingerTimeoutMs: 300 }), '127.0.0.1');
  socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nabc');
  await once(socket, 'data');
  socket.write('d');
  await delay(600);
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  expect(String((await once(socket, 'data'))[0])).toContain('refused');
  socket.destroy();
});

test('a connection is closed at once after the response to a complete request', async () => {
  const socket = connect({ port: await start({}), host: '127.0.0.1', allowHalfOpen: true });
  const accepted = once(server.app.server, 'connection') as Promise<[Socket]>;
  socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  await once((await accepted)[0], 'close');
  socket.destroy();
});

/** Sends bytes. Returns the statuses of the responses, and the number of requests that were processed. */
async function sendInParts(...parts: string[]) {
  let processed = 0;
  server = createTestServer();
  server.serveFirst((_request, response) => {
    processed++;
    response.writeHead(413, { connection: 'close' }).end();
  });
  const socket = connect(await server.listen(0, '127.0.0.1'), '127.0.0.1');
  let text = '';
  socket.on('data', chunk => (text += chunk.toString('latin1')));
  const closed = once(socket, 'close');
  for (const [at, part] of parts.entries()) {
    if (at > 0) await once(socket, 'data');
    socket.write(part);
  }
  await closed;
  await server.close();
  return { processed, statuses: [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status)) };
}

describe('requests behind the last response of a connection are not processed', () => {
  const LENGTH = 'Content-Length: 2\r\n\r\n';
  const START = 'POST / HTTP/1.1\r\nHost: x\r\n';

  test.each([
    ['several hosts', 'Host: y', 400],
    ['another expectation', 'Expect: tea', 417],
  ])('which refuses %s', async (_what, header, status) => {
    const refused = `${START}${header}\r\n${LENGTH}ok`;
    expect(await sendInParts(`${refused}${START}${LENGTH}ok`)).toEqual({ processed: 0, statuses: [status] });
    expect(await sendInParts(`${refused}${START}Expect: tea\r\n${LENGTH}ok`)).toEqual({
      processed: 0,
      statuses: [status],
    });
  });

  test('which was sent before its request was complete', async () => {
    const sent = await sendInParts(`${START}${LENGTH}o`, `k${START}${LENGTH}ok`);
    expect(sent).toEqual({ processed: 1, statuses: [413] });
  });
});

const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

/** Starts a server that holds the response to each request, and opens a connection. */
async function hold() {
  const answers: (() => void)[] = [];
  server = createTestServer({ limits: { drainTimeoutMs: 5_000 } });
  server.app.get('/fastify', async () => 'done');
  server.serveFirst((request, response, pass) => {
    answers.push(() => {
      if (request.url === '/fastify') return pass();
      response.writeHead(200, server.endsConnection(request) ? { connection: 'close' } : {}).end();
    });
  });
  const socket = connect(await server.listen(0, '127.0.0.1'), '127.0.0.1');
  const connections: string[] = [];
  socket.on('data', chunk => {
    for (const [, value] of `${chunk}`.matchAll(/connection: ([a-z-]+)\r/gi)) connections.push(`${value}`);
  });
  return { answers, socket, connections };
}

test('requests behind a refused one are not processed if its response waits for earlier ones', async () => {
  const { answers, socket, connections } = await hold();
  socket.write(GET + GET.replace('Host', 'Host: y\r\nHost') + GET);
  await vi.waitFor(() => expect(answers).not.toHaveLength(0));
  const closed = once(socket, 'close');
  answers[0]?.();
  await closed;
  expect(answers).toHaveLength(1);
  expect(connections).toEqual(['keep-alive', 'close']);
});

describe('while draining', () => {
  test('requests are processed if no response has closed the connection, because the latest one was sent before', async () => {
    const { answers, socket, connections } = await hold();
    socket.write(GET.repeat(2));
    await vi.waitFor(() => expect(answers).toHaveLength(2));
    answers[1]?.();
    server.drain();
    answers[0]?.();
    await vi.waitFor(() => expect(connections).toEqual(['keep-alive', 'keep-alive']));
    const closed = once(socket, 'close');
    socket.write(GET);
    await vi.waitFor(() => expect(answers).toHaveLength(3));
    answers[2]?.();
    await closed;
    expect(connections).toEqual(['keep-alive', 'keep-alive', 'close']);
  });

  test('a request is not processed if it arrives when earlier ones are answered', async () => {
    const { answers, socket, connections } = await hold();
    socket.write(GET.repeat(2));
    await vi.waitFor(() => expect(answers).toHaveLength(2));
    server.drain();
    answers[0]?.();
    await vi.waitFor(() => expect(connections).toEqual(['keep-alive']));
    const closed = once(socket, 'close');
    socket.write(GET);
    const next = vi.waitFor(() => expect(answers).toHaveLength(3), 200);
    await expect(next).rejects.toThrow();
    answers[1]?.();
    await closed;
    expect(connections).toEqual(['keep-alive', 'close']);
  });

  test('a connection is closed if Fastify sends its last response', async () => {
    const { answers, socket, connections } = await hold();
    socket.write(GET + GET.replace('/', '/fastify'));
    await vi.waitFor(() => expect(answers).toHaveLength(2));
    server.drain();
    const closed = once(socket, 'close');
    for (const answer of answers) answer();
    await closed;
    expect(connections).toEqual(['keep-alive', 'close']);
  });
});

test('an idle connection does not keep its latest request in memory', async () => {
  const requests: WeakRef<object>[] = [];
  server = createTestServer();
  server.serveFirst((request, response) => {
    requests.push(new WeakRef(request));
    response.end();
  });
  const socket = connect(await server.listen(0, '127.0.0.1'), '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(socket, 'data');
  await vi.waitFor(() => {
    usedMemory();
    expect(requests[0]?.deref()).toBeUndefined();
  });
  socket.destroy();
});
