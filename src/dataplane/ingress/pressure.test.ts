import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { startIngress } from './testing/ingress-harness.ts';

let role: Awaited<ReturnType<typeof startIngress>>;
afterEach(() => role.ingress.close());

test('bodies of a workspace that do not end leave room for those of others', async () => {
  role = await startIngress({ heldBytes: 1024 * 1024 });
  const { store } = role;
  const other = `ten_${'z'.repeat(20)}`;
  const { checkKey, readQueue } = store;
  store.checkKey = (tenant, sha256) => checkKey(tenant === other ? store.tenant : tenant, sha256);
  store.readQueue = (tenant, queue) => readQueue(tenant === other ? store.tenant : tenant, queue);
  const size = 64 * 1024;
  const head = `POST /events/${store.tenant}/orders HTTP/1.1\r\nHost: x\r\nx-api-key: ${store.key}\r\n`;
  const sockets = Array.from({ length: 40 }, () => connect(role.port, '127.0.0.1').on('error', () => {}));
  for (const socket of sockets) socket.write(`${head}Content-Length: ${size}\r\n\r\n${'x'.repeat(size - 1)}`);
  await vi.waitFor(async () => {
    expect(Number(/^sluice_ingress_held_bytes (\d+)/m.exec(await role.registry.metrics())?.[1])).toBeGreaterThan(
      400 * 1024,
    );
  });
  const path = `/events/${other}/orders`;
  expect((await role.send({ path, body: Buffer.alloc(200 * 1024) })).status).toBe(202);
  expect((await role.send({ body: Buffer.alloc(200 * 1024) })).status).toBe(503);
  for (const socket of sockets) socket.destroy();
});

test('closes connections beyond the limit, and counts them', async () => {
  role = await startIngress({ connections: 3 });
  const open = async () => {
    const socket = connect(role.port, '127.0.0.1').on('error', () => {});
    socket.write('GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n');
    const isAnswered = await new Promise<boolean>(resolve => {
      socket.once('data', () => resolve(true));
      socket.once('close', () => resolve(false));
    });
    return { socket, isAnswered };
  };
  const opened = [await open(), await open(), await open(), await open()];
  expect(opened.map(({ isAnswered }) => isAnswered)).toEqual([true, true, true, false]);
  const metrics = await role.registry.metrics();
  expect(metrics).toContain('sluice_ingress_connections 3\n');
  expect(metrics).toContain('sluice_ingress_connections_refused_total{limit="total"} 1\n');
  for (const { socket } of opened) socket.destroy();
  await vi.waitFor(async () => expect(await role.registry.metrics()).toContain('sluice_ingress_connections 0\n'));
  expect((await role.send({})).status).toBe(202);
});

test('while a stream does not answer, the bodies of its events are not waited for', async () => {
  role = await startIngress({ ingestTimeoutMs: 500 });
  role.store.hold = new Promise(() => {});
  expect((await role.send({})).status).toBe(503);
  // This event finds out whether the store answers.
  const next = role.send({});
  await vi.waitFor(() => expect(role.store.calls).toHaveLength(2));
  const socket = connect(role.port, '127.0.0.1');
  const head = `POST /events/${role.store.tenant}/orders HTTP/1.1\r\nHost: x\r\nx-api-key: ${role.store.key}\r\n`;
  socket.write(`${head}Content-Length: 9\r\n\r\n`);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  expect(answer.toString()).toMatch(/^HTTP\/1\.1 503 /);
  socket.destroy();
  expect((await next).status).toBe(503);
});
