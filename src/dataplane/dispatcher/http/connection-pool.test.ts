import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { createSecureContext } from 'node:tls';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { createNetworkPolicy } from '../../../core/delivery/network.ts';
import { answer, startScriptedEndpoint } from '../testing/scripted-endpoint.ts';
import { createConnectionPool, createOrigin, type PooledConnection } from './connection-pool.ts';

/** Enough for a busy machine. */
const SOON = { timeout: 20_000 };

interface Limits {
  readonly headers?: string[];
  readonly idleTimeoutMs?: number;
  readonly idleConnections?: number;
  readonly connectionMs?: number;
  readonly leaveMs?: number;
  readonly closedWithinMs?: number;
  /** Called when a response was written. */
  readonly answered?: (socket: Socket) => void;
}

async function setUp({ headers = [], idleTimeoutMs = 30, answered = () => {}, ...limits }: Limits = {}) {
  const endpoint = await startScriptedEndpoint(socket => socket.write(answer(200, headers), () => answered(socket)));
  const pool = createConnectionPool({
    policy: createNetworkPolicy({ allowedNetworks: ['127.0.0.1'] }),
    connectTimeoutMs: 1000,
    idleTimeoutMs,
    ...limits,
    secureContext: createSecureContext(),
  });
  onTestFinished(endpoint.close);
  onTestFinished(async () => pool.close());
  const origin = createOrigin(new URL(endpoint.url));
  /** Uses a connection, and returns it to the pool. */
  const useOnce = async () => {
    const connection = pool.take(origin);
    await use(connection);
    pool.give(connection);
    return connection;
  };
  return { endpoint, pool, origin, useOnce };
}

function use(connection: PooledConnection): Promise<void> {
  return new Promise((resolve, reject) =>
    connection.send({
      head: 'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\n',
      body: Buffer.from('x'),
      maySend: () => true,
      onSent() {},
      onUnsent: reject,
      onHead() {},
      onBody() {},
      onEnd: resolve,
      onFailure: reject,
    }),
  );
}

test('reuses the connection that was used last', async () => {
  const { pool, origin } = await setUp();
  const [first, second] = [pool.take(origin), pool.take(origin)];
  expect(first).not.toBe(second);
  await Promise.all([use(first), use(second)]);
  pool.give(first);
  pool.give(second);
  expect(pool.take(origin)).toBe(second);
  expect(pool.take(origin)).toBe(first);
});

test('closes an idle connection after its time', async () => {
  const { endpoint, pool, origin, useOnce } = await setUp();
  const connection = await useOnce();
  expect(origin.idle).toEqual([connection]);
  await endpoint.lastConnectionEnded();
  expect(origin.idle).toEqual([]);
  expect(pool.take(origin)).not.toBe(connection);
});

test('does not reuse a connection that the server will close soon', async () => {
  const { endpoint, origin, useOnce } = await setUp({ headers: ['keep-alive: timeout=2'], idleTimeoutMs: 60_000 });
  await useOnce();
  await endpoint.lastConnectionEnded();
  expect(origin.idle).toEqual([]);
  expect(endpoint.connections()).toBe(1);
});

test('reuses a connection until 2 s before the server closes it', async () => {
  const { endpoint, pool, origin, useOnce } = await setUp({
    headers: ['keep-alive: timeout=3, max=9'],
    idleTimeoutMs: 60_000,
  });
  const connection = await useOnce();
  expect(pool.take(origin)).toBe(connection);
  await use(connection);
  pool.give(connection);
  const startedMs = performance.now();
  await endpoint.lastConnectionEnded();
  expect(performance.now() - startedMs).toBeGreaterThan(900);
  expect(origin.idle).toEqual([]);
});

test('replaces a busy connection after some time, because the name may have another address by then', async () => {
  const { endpoint, useOnce } = await setUp({ idleTimeoutMs: 60_000, connectionMs: 300 });
  const startedMs = performance.now();
  while (endpoint.connections() < 3) await useOnce();
  expect(performance.now() - startedMs).toBeGreaterThan(600);
  // Most of the requests have used the same connection as the one before.
  expect(endpoint.requests.length).toBeGreaterThan(10);
});

test('closes an idle connection if its time is over, even if the server would keep it', async () => {
  const { endpoint, origin, useOnce } = await setUp({ headers: ['keep-alive: timeout=60'], connectionMs: 50 });
  await useOnce();
  await endpoint.lastConnectionEnded();
  expect(origin.idle).toEqual([]);
  expect(endpoint.connections()).toBe(1);
});

test('does not reuse an idle connection of an origin that closes its connections at once', async () => {
  const { pool, origin, useOnce } = await setUp({ idleTimeoutMs: 60_000 });
  const connection = await useOnce();
  origin.closesUntilMs = performance.now() + 60_000;
  expect(pool.take(origin)).not.toBe(connection);
});

test.each([
  ['the server has closed one', (socket: Socket) => void socket.end(), true],
  ['we have closed one because of unexpected bytes', (socket: Socket) => void socket.write('HTTP'), false],
])('an origin closes its connections at once: %s right after a response', async (_name, act, closes) => {
  const sockets: Socket[] = [];
  const { endpoint, origin, useOnce } = await setUp({
    idleTimeoutMs: 60_000,
    closedWithinMs: 60_000,
    answered: socket => void sockets.push(socket),
  });
  await useOnce();
  act(sockets[0] as Socket);
  await endpoint.lastConnectionEnded();
  await vi.waitFor(() => expect(origin.idle).toEqual([]), SOON);
  expect(origin.closesUntilMs > performance.now()).toBe(closes);
});

describe('a connection that the server has announced to close', () => {
  const CLOSES = { headers: ['connection: close'], leaveMs: 60_000 };
  test('is closed by the server, because the port of the side that closes it cannot be used for a minute', async () => {
    const sockets: Socket[] = [];
    const set = await setUp({ ...CLOSES, answered: socket => void sockets.push(socket) });
    await set.useOnce();
    expect(set.origin.idle).toEqual([]);
    await delay(200);
    expect(sockets[0]?.readableEnded).toBe(false);
    sockets[0]?.end();
    await set.endpoint.lastConnectionEnded();
  });

  test('is closed by us if the server does not close it within a second', async () => {
    const set = await setUp({ headers: CLOSES.headers });
    const startedMs = performance.now();
    await set.useOnce();
    expect(set.origin.idle).toEqual([]);
    await set.endpoint.lastConnectionEnded();
    expect(performance.now() - startedMs).toBeGreaterThan(900);
  });

  test('is closed by us at once if there are too many, if it sends anything else, or if the pool is closed', async () => {
    const sockets: Socket[] = [];
    const set = await setUp({ ...CLOSES, idleConnections: 2, answered: socket => void sockets.push(socket) });
    for (let count = 0; count < 3; count++) {
      await set.useOnce();
      expect(set.origin.idle).toEqual([]);
    }
    const closed = () => sockets.map(socket => socket.readableEnded);
    await vi.waitFor(() => expect(closed()).toEqual([false, false, true]), SOON);
    sockets[1]?.write('HTTP');
    await vi.waitFor(() => expect(closed()).toEqual([false, true, true]), SOON);
    set.pool.close();
    await vi.waitFor(() => expect(closed()).toEqual([true, true, true]), SOON);
  });
});

test('does not accept a connection that was removed', async () => {
  const { pool, origin } = await setUp();
  const connection = pool.take(origin);
  pool.drop(connection);
  pool.give(connection);
  expect(origin.idle).toEqual([]);
  expect(pool.take(origin)).not.toBe(connection);
});

test.each([
  ['https://partner.test/hook', 'partner.test', 443, true],
  ['https://partner.test:8443/', 'partner.test', 8443, true],
  ['http://10.0.0.1/', '10.0.0.1', 80, false],
  ['https://[2606:4700::1111]:444/', '2606:4700::1111', 444, true],
])('the target of %s', (url, hostname, port, tls) => {
  expect(createOrigin(new URL(url)).target).toEqual({ hostname, port, tls });
});

test('closes the connection that has been idle for the longest time if there are too many', async () => {
  const { endpoint, pool, origin } = await setUp({ idleTimeoutMs: 60_000, idleConnections: 2 });
  const other = createOrigin(new URL(endpoint.url));
  const taken = [pool.take(origin), pool.take(other), pool.take(origin)] as const;
  await Promise.all(taken.map(use));
  pool.give(taken[0]);
  pool.give(taken[1]);
  expect(pool.take(origin)).toBe(taken[0]);
  pool.give(taken[0]);
  pool.give(taken[2]);
  expect(other.idle).toEqual([]);
  expect(origin.idle).toEqual([taken[0], taken[2]]);
  expect(pool.take(other)).not.toBe(taken[1]);
});
