import { once } from 'node:events';
import { createSecureContext } from 'node:tls';
import { afterEach, expect, test } from 'vitest';
import { createNetworkPolicy } from '../../core/delivery/network.ts';
import { type Connection, createConnectionPool, createOrigin } from './connection-pool.ts';
import { answer, startScriptedEndpoint } from './testing/scripted-endpoint.ts';

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

async function setUp({ headers = [] as string[], idleTimeoutMs = 30 } = {}) {
  const endpoint = await startScriptedEndpoint(socket => socket.write(answer(200, headers)));
  const pool = createConnectionPool({
    policy: createNetworkPolicy(['127.0.0.1']),
    connectTimeoutMs: 1000,
    idleTimeoutMs,
    maxHeaderBytes: 16_384,
    secureContext: createSecureContext(),
  });
  closing.push(endpoint.close, pool.close);
  return { endpoint, pool, origin: createOrigin(new URL(endpoint.url)) };
}

async function use(connection: Connection): Promise<void> {
  const { body } = await connection.client.request({ path: '/', method: 'POST', body: 'x' });
  await body.dump();
}

test('the connection that was used last is used first', async () => {
  const { pool, origin } = await setUp();
  const [first, second] = [pool.take(origin), pool.take(origin)];
  expect(first).not.toBe(second);
  pool.give(first);
  pool.give(second);
  expect(pool.take(origin)).toBe(second);
  expect(pool.take(origin)).toBe(first);
});

test('an idle connection ends after its time and is forgotten', async () => {
  const { endpoint, pool, origin } = await setUp();
  const connection = pool.take(origin);
  await use(connection);
  pool.give(connection);
  expect(origin.idle).toEqual([connection]);
  await once(connection.client, 'disconnect');
  await endpoint.lastConnectionEnded();
  expect(origin.idle).toEqual([]);
  expect(connection.client.destroyed).toBe(true);
});

test('a server that says it closes soon is not used again', async () => {
  const { endpoint, pool, origin } = await setUp({ headers: ['keep-alive: timeout=2'], idleTimeoutMs: 60_000 });
  const connection = pool.take(origin);
  await use(connection);
  await endpoint.lastConnectionEnded();
  await use(connection);
  expect(endpoint.connections()).toBe(2);
});

test('what was dropped is not taken back', async () => {
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
