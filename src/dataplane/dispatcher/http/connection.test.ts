import { once } from 'node:events';
import { type AddressInfo, createServer, connect as netConnect, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { createConnection, type Exchange } from './connection.ts';

const opened: { destroy: () => void }[] = [];
afterEach(() => {
  for (const each of opened.splice(0)) each.destroy();
});

/** Returns both ends of a connection on loopback. `theirs` does not read any data yet. */
async function connectPair(): Promise<{ ours: Socket; theirs: Socket }> {
  const server = createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const ours = netConnect((server.address() as AddressInfo).port, '127.0.0.1');
  const [theirs] = (await once(server, 'connection')) as [Socket];
  server.close();
  opened.push(ours, theirs);
  return { ours, theirs };
}

function send(socket: Socket, letter: string): void {
  const target = { target: { hostname: '127.0.0.1', port: 1, tls: false }, session: {} };
  const ignore = () => {};
  const connection = createConnection(
    (_target, _session, done) => {
      done(null, socket);
      return ignore;
    },
    target,
    ignore,
  );
  const answer = { onSent: ignore, onUnsent: ignore, onHead: ignore, onBody: ignore, onEnd: ignore, onFailure: ignore };
  const request = { head: 'POST / HTTP/1.1\r\n\r\n', body: Buffer.alloc(8_000, letter), maySend: () => true };
  const exchange: Exchange = { ...request, ...answer };
  connection.send(exchange);
}

test('a request that waits for the receiver does not change while others are sent', async () => {
  const slow = await connectPair();
  const fast = await connectPair();
  // This is more than the kernel buffers for a receiver that does not read.
  const ahead = Buffer.alloc(32 * 1024 * 1024);
  slow.ours.write(ahead);
  send(slow.ours, 'a');
  expect(slow.ours.writableLength).toBeGreaterThan(8_000);
  send(fast.ours, 'b');

  slow.ours.end();
  let [bytes, tail] = [0, ''];
  slow.theirs.on('data', part => {
    bytes += part.length;
    tail = (tail + part.toString('latin1')).slice(-8_000);
  });
  slow.theirs.resume();
  await once(slow.theirs, 'end');
  expect(bytes).toBe(ahead.length + 'POST / HTTP/1.1\r\n\r\n'.length + 8_000);
  expect(tail).toBe('a'.repeat(8_000));
});
