import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import fastify, { type FastifyInstance } from 'fastify';
import { afterEach, expect, test, vi } from 'vitest';
import { writeSelfSigned } from '../../test/support/certificates.ts';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { limitUnread } from './unread-responses.ts';

/** More than the kernel stores for a connection that is not read. */
const SIZE = 16_777_216;
const LARGE = 'x'.repeat(SIZE);
/** Enough for a busy machine. */
const SOON = { timeout: 20_000 };

type Certificate = { readonly cert: Buffer; readonly key: Buffer };

let app: FastifyInstance;
afterEach(() => app.close());

/** Starts a server that sends `body`. The query of a request is the name of its client. */
async function start(body: string | Buffer, mostBytes: number, https: Certificate | null = null) {
  app = fastify({ forceCloseConnections: true, https }) as unknown as FastifyInstance;
  let [handled, closed] = [0, 0];
  limitUnread(app, {
    mostBytes,
    clientOf: request => request.url,
    onClosed: () => void closed++,
  });
  app.get('/', async () => {
    handled++;
    return body;
  });
  await app.listen({ port: 0, host: '127.0.0.1' });
  const { port } = app.server.address() as AddressInfo;
  /** Sends a request, and waits until it has been processed. The response is not read. */
  async function send(client: string): Promise<Socket> {
    const before = handled;
    const address = { port, host: '127.0.0.1', rejectUnauthorized: false };
    const socket = https === null ? connect(address) : connectTls(address);
    socket.on('error', () => {});
    socket.pause().write(`GET /?${client} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    await vi.waitFor(() => expect(handled).toBe(before + 1), SOON);
    return socket;
  }
  return { send, closed: () => closed };
}

/** Reads a response to its end. Returns true if it is complete. */
async function read(socket: Socket): Promise<boolean> {
  let bytes = 0;
  socket.on('data', chunk => void (bytes += chunk.length));
  await once(socket.resume(), 'close');
  return bytes > SIZE;
}

test('beyond the limit, the oldest response of the client with the most unread bytes is closed', async () => {
  const { send, closed } = await start(LARGE, 3.5 * SIZE);
  const sockets: Socket[] = [];
  for (const client of ['ada', 'mallory', 'mallory', 'mallory']) sockets.push(await send(client));
  await vi.waitFor(() => expect(closed()).toBe(1), SOON);
  expect(await Promise.all(sockets.map(read))).toEqual([true, false, true, true]);
  expect(closed()).toBe(1);
});

test('responses that were read, or whose clients have left, are not counted', async () => {
  const { send, closed } = await start(LARGE, 1.5 * SIZE);
  for (let count = 0; count < 4; count++) {
    const socket = await send('ada');
    if (count % 2 === 0) expect(await read(socket)).toBe(true);
    else await once(socket.destroy(), 'close');
    await vi.waitFor(async () => expect(await connectionsOf(app)).toBe(0), SOON);
  }
  expect(closed()).toBe(0);
});

test('small responses are not counted', async () => {
  const { send, closed } = await start('x'.repeat(1_000), 1);
  await once((await send('ada')).resume(), 'close');
  expect(closed()).toBe(0);
});

test('bytes that responses share are only counted with TLS, which encrypts them for each response', async () => {
  const folder = await temporaryFolder('unread-responses');
  const files = { cert: join(folder.path, 'cert'), key: join(folder.path, 'key') };
  await writeSelfSigned(files, 'localhost');
  const certificate = { cert: await readFile(files.cert), key: await readFile(files.key) };
  await folder.remove();
  const counts: number[] = [];
  for (const https of [null, certificate]) {
    const { send, closed } = await start(Buffer.from(LARGE), 1.5 * SIZE, https);
    const sockets = [await send('ada'), await send('ada')];
    expect(await Promise.all(sockets.map(read))).toEqual([https === null, true]);
    counts.push(closed());
    await app.close();
  }
  expect(counts).toEqual([0, 1]);
});

const connectionsOf = (server: FastifyInstance) =>
  new Promise((resolve, reject) =>
    server.server.getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
  );
