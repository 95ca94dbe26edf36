import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { Duplex } from 'node:stream';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createAuthority } from '../../../test/support/certificates.ts';
import { readClientHello } from '../../../test/support/client-hello.ts';
import { type TemporaryFolder, temporaryFolder } from '../../../test/support/temporary-folder.ts';
import type { HttpServer } from '../server.ts';
import { createTestServer } from '../testing/test-server.ts';

const CLIENTS = 50;
/** Enough for a busy machine. */
const SOON = { timeout: 20_000 };

let folder: TemporaryFolder;
let certificate: { cert: string; key: string };
let hello: Buffer;
beforeAll(async () => {
  folder = await temporaryFolder('handshakes');
  const { cert, key } = await (await createAuthority(folder.path)).issue('server', 'IP:127.0.0.1');
  certificate = { cert: await readFile(cert, 'utf8'), key: await readFile(key, 'utf8') };
  hello = await readClientHello();
});
afterAll(() => folder.remove());

async function start({ headersTimeoutMs = 10_000 } = {}): Promise<{ server: HttpServer; port: number }> {
  const server = createTestServer({ certificate, limits: { headersTimeoutMs } });
  server.serveFirst((_request, response) => void response.end('done'));
  return { server, port: await server.listen(0, '127.0.0.1') };
}

test('a single handshake starts in each iteration of the event loop, and addresses take turns', async () => {
  const { server, port } = await start();
  const started: (string | undefined)[] = [];
  const counts: number[] = [];
  let inIteration = 0;
  const seen = new Set<TLSSocket>();
  server.app.server.on('keylog', (_line, socket: TLSSocket) => {
    if (seen.has(socket)) return;
    seen.add(socket);
    started.push(socket.remoteAddress);
    inIteration++;
  });
  let accepted = 0;
  server.app.server.prependListener('connection', () => void accepted++);
  const open = (localAddress: string) => connect({ port, host: '127.0.0.1', localAddress }).on('error', () => {});
  const sockets = [...Array.from({ length: CLIENTS }, () => open('127.0.0.1')), open('127.0.0.2')];
  await vi.waitFor(() => expect(accepted).toBe(sockets.length), SOON);
  const count = () => {
    counts.push(inIteration);
    inIteration = 0;
    if (seen.size < sockets.length) setImmediate(count);
  };
  count();
  for (const socket of sockets) socket.write(hello);
  await vi.waitFor(() => expect(seen.size).toBe(sockets.length), SOON);
  expect(Math.max(...counts)).toBe(1);
  expect(started.indexOf('127.0.0.2')).toBeLessThan(CLIENTS / 2);
  for (const socket of sockets) socket.destroy();
  await server.close();
});

/** Connects to a server and sends each byte separately. */
function connectSlowly(port: number): Duplex {
  const socket = connect(port, '127.0.0.1').setNoDelay();
  const duplex = new Duplex({
    read: () => void socket.resume(),
    async write(chunk: Buffer, _encoding, done) {
      for (const byte of chunk) {
        socket.write(Buffer.of(byte));
        await new Promise(setImmediate);
      }
      done();
    },
  });
  socket.on('data', chunk => void duplex.push(chunk)).on('end', () => void duplex.push(null));
  return duplex;
}

test('a handshake can arrive in pieces', async () => {
  const { server, port } = await start();
  const socket = connectTls({ socket: connectSlowly(port), rejectUnauthorized: false });
  socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  let text = '';
  for await (const chunk of socket) text += String(chunk);
  expect(text).toMatch(/^HTTP\/1\.1 200 /);
  await server.close();
});

test('the first message can consist of several records', async () => {
  const { server, port } = await start();
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  const message = hello.subarray(5);
  for (const part of [message.subarray(0, 100), message.subarray(100)]) {
    socket.write(Buffer.of(22, 3, 1, part.length >> 8, part.length & 255));
    socket.write(part);
  }
  const [answer] = (await once(socket, 'data')) as [Buffer];
  // A handshake message, not an alert.
  expect(answer[0]).toBe(22);
  socket.destroy();
  await server.close();
});

test.each([
  ['nothing', () => Buffer.alloc(0)],
  ['only the start of its first message', () => hello.subarray(0, 100)],
  ['no TLS', () => Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n')],
  ['more than a record', () => Buffer.concat([Buffer.of(22, 3, 1, 64, 0), Buffer.alloc(20_000)])],
  ['a message that is longer than its record', () => Buffer.of(22, 3, 1, 0, 4, 1, 0, 9, 9)],
  ['an empty record', () => Buffer.of(22, 3, 1, 0, 0)],
])('a client that sends %s is disconnected', async (_what, bytes) => {
  const { server, port } = await start({ headersTimeoutMs: 200 });
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  socket.resume().write(bytes());
  await once(socket, 'close');
  await server.close();
});
