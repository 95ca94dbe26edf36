import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { createLogger } from '../../telemetry/log.ts';
import { createRegistry } from '../../telemetry/metrics.ts';
import { createCertificate } from '../dispatcher/testing/certificate.ts';
import { createIngress } from './server.ts';
import { startIngress } from './testing/ingress-harness.ts';

/** Enough for a busy machine. */
const SOON = { timeout: 20_000 };

let role: Awaited<ReturnType<typeof startIngress>>;
afterEach(() => role.ingress.close());

const eventHead = () =>
  `POST /events/${role.store.tenant}/orders HTTP/1.1\r\nHost: x\r\nx-api-key: ${role.store.key}\r\n`;

test('bodies of a workspace that do not end leave room for the bodies of others', async () => {
  role = await startIngress({ heldBytes: 1024 * 1024 });
  const { store } = role;
  const other = `ten_${'z'.repeat(20)}`;
  const { checkKey, readQueue } = store;
  store.checkKey = (tenant, sha256) => checkKey(tenant === other ? store.tenant : tenant, sha256);
  store.readQueue = (tenant, queue) => readQueue(tenant === other ? store.tenant : tenant, queue);
  const size = 64 * 1024;
  const sockets = Array.from({ length: 40 }, () => connect(role.port, '127.0.0.1').on('error', () => {}));
  for (const socket of sockets) socket.write(`${eventHead()}Content-Length: ${size}\r\n\r\n${'x'.repeat(size - 1)}`);
  await vi.waitFor(async () => {
    expect(Number(/^sluice_ingress_held_bytes (\d+)/m.exec(await role.registry.metrics())?.[1])).toBeGreaterThan(
      400 * 1024,
    );
  }, SOON);
  const path = `/events/${other}/orders`;
  expect((await role.send({ path, body: Buffer.alloc(200 * 1024) })).status).toBe(202);
  expect((await role.send({ body: Buffer.alloc(200 * 1024) })).status).toBe(503);
  for (const socket of sockets) socket.destroy();
});

const GET = 'GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n';

/** Opens a connection, sends `text`, and waits for the first data or the end of the connection. */
async function dial(text: string, socket: Socket = connect(role.port, '127.0.0.1')) {
  socket.on('error', () => {});
  onTestFinished(() => void socket.destroy());
  const state = { socket, isAnswered: false, isClosed: false };
  socket.on('data', () => {
    state.isAnswered = true;
  });
  socket.once('close', () => {
    state.isClosed = true;
  });
  socket.write(text);
  await vi.waitFor(() => expect(state.isAnswered || state.isClosed).toBe(true), SOON);
  return state;
}

/** Opens connections that never send the rest of a request. */
async function hold(text: string, count: number) {
  const sockets = Array.from({ length: count }, () => connect(role.port, '127.0.0.1').on('error', () => {}));
  onTestFinished(() => sockets.forEach(socket => socket.destroy()));
  for (const socket of sockets) socket.write(text);
  await vi.waitFor(
    async () => expect(await role.registry.metrics()).toContain(`sluice_ingress_connections ${count}\n`),
    SOON,
  );
}

test('a new connection replaces the connection that has been idle for the longest time, and this is counted', async () => {
  role = await startIngress({ connections: 3 });
  const [first, second, third] = [await dial(GET), await dial(GET), await dial(GET)];
  first.isAnswered = false;
  first.socket.write(GET);
  await vi.waitFor(() => expect(first.isAnswered).toBe(true), SOON);
  const fourth = await dial(GET);
  await vi.waitFor(() => expect(second.isClosed).toBe(true), SOON);
  expect([first, third, fourth].map(({ isClosed }) => isClosed)).toEqual([false, false, false]);
  expect(fourth.isAnswered).toBe(true);
  const metrics = await role.registry.metrics();
  expect(metrics).toContain('sluice_ingress_connections 3\n');
  expect(metrics).toContain('sluice_ingress_connections_closed_total{limit="total"} 1\n');
  for (const { socket } of [first, third, fourth]) socket.destroy();
  await vi.waitFor(async () => expect(await role.registry.metrics()).toContain('sluice_ingress_connections 0\n'), SOON);
  expect((await role.send({})).status).toBe(202);
});

test('a recently used TLS connection is kept', async () => {
  role = await startIngress();
  const certificate = createCertificate({ dns: ['ingress.test'], ipv4: [[127, 0, 0, 1]] });
  const { store } = role;
  const registry = createRegistry();
  const log = createLogger({ level: 'silent' });
  const { memorySource } = store;
  const ingress = createIngress({ store, memorySource, registry, log, certificate, limits: { connections: 2 } });
  onTestFinished(() => ingress.close());
  const port = await ingress.listen(0, '127.0.0.1');
  const dialTls = () => dial(GET, connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false }));
  const [first, second] = [await dialTls(), await dialTls()];
  first.isAnswered = false;
  first.socket.write(GET);
  await vi.waitFor(() => expect(first.isAnswered).toBe(true), SOON);
  expect(await dialTls()).toMatchObject({ isAnswered: true });
  await vi.waitFor(() => expect(second.isClosed).toBe(true), SOON);
  expect(first.isClosed).toBe(false);
  expect(await registry.metrics()).toContain('sluice_ingress_connections 2\n');
});

test.each([
  ['are silent', () => ''],
  ['do not send the rest of their headers', () => 'GET / HTTP/1.1\r\nHost:'],
  ['do not send the rest of a body', () => `${eventHead()}Content-Length: 9\r\n\r\n12345678`],
])('clients that %s do not lock out others', async (_what, text) => {
  role = await startIngress({ connections: 4 });
  await hold(text(), 4);
  for (let count = 0; count < 6; count++) expect(await dial(GET)).toMatchObject({ isAnswered: true });
});

test('a new connection is closed if the requests of all others are being processed', async () => {
  role = await startIngress({ connections: 2 });
  const { store } = role;
  const held = Promise.withResolvers<void>();
  store.hold = held.promise;
  const events = [dial(`${eventHead()}Content-Length: 1\r\n\r\n1`), dial(`${eventHead()}Content-Length: 1\r\n\r\n2`)];
  // Each event holds 1 KiB in addition to its body.
  await vi.waitFor(
    async () => expect(await role.registry.metrics()).toContain('sluice_ingress_held_bytes 2050\n'),
    SOON,
  );
  expect(await dial(GET)).toMatchObject({ isAnswered: false, isClosed: true });
  held.resolve();
  expect(await Promise.all(events)).toMatchObject([{ isAnswered: true }, { isAnswered: true }]);
  expect(await dial(GET)).toMatchObject({ isAnswered: true });
});

test('while a stream does not respond, its requests are refused before their bodies are received', async () => {
  role = await startIngress({ ingestTimeoutMs: 500 });
  role.store.hold = new Promise(() => {});
  expect((await role.send({})).status).toBe(503);
  const { calls } = role.store;
  // This event is used to find out whether the store responds. If the first call has not ended yet, it waits for it.
  let next: ReturnType<typeof role.send>;
  do {
    next = role.send({});
    await Promise.race([next, vi.waitFor(() => expect(calls).toHaveLength(2), SOON)]);
  } while (calls.length < 2);
  const socket = connect(role.port, '127.0.0.1');
  socket.write(`${eventHead()}Content-Length: 9\r\n\r\n`);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  expect(answer.toString()).toMatch(/^HTTP\/1\.1 503 /);
  socket.destroy();
  expect((await next).status).toBe(503);
});
