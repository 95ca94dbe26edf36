import { execFileSync } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { BACKLOG } from '../server.ts';
import { createTestServer } from '../testing/test-server.ts';
import { createArrivals } from './arrivals.ts';

const CONNECTIONS = 50;

let server: Server | undefined;
const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
  server?.close();
});

/**
 * Connects many clients. When the first of them is accepted, this waits for all others, and returns how many have been
 * accepted by then.
 */
async function acceptedBefore(options: Parameters<typeof createArrivals>[1]): Promise<number> {
  let accepted = 0;
  const counting = createServer(socket => {
    accepted++;
    sockets.push(socket);
  });
  server = counting;
  await once(counting.listen(0, '127.0.0.1'), 'listening');
  const { port } = counting.address() as AddressInfo;
  const afterArrivals = createArrivals(counting, options);
  const arrived = new Promise<void>(resolve => counting.once('connection', () => afterArrivals(resolve)));
  for (let n = 0; n < CONNECTIONS; n++) sockets.push(connect(port, '127.0.0.1').on('error', () => {}));
  await arrived;
  return accepted;
}

test('all connections that have arrived are accepted first', async () => {
  expect(await acceptedBefore({ mostMs: Infinity })).toBe(CONNECTIONS);
});

test('connections that keep arriving only take a limited time', async () => {
  let nowMs = 0;
  const accepted = await acceptedBefore({ mostMs: 5, nowMs: () => nowMs++ });
  expect(accepted).toBeGreaterThan(1);
  expect(accepted).toBeLessThan(CONNECTIONS / 2);
});

test('several functions wait for the same connections', async () => {
  const counted = new EventEmitter();
  const afterArrivals = createArrivals(counted as unknown as Server, { mostMs: Infinity });
  const order: string[] = [];
  let left = 5;
  const arrive = () => {
    if (left-- === 0) return;
    counted.emit('connection');
    order.push('connection');
    setImmediate(arrive);
  };
  arrive();
  await Promise.all(
    ['a', 'b'].map(name => new Promise<void>(resolve => afterArrivals(() => resolve(void order.push(name))))),
  );
  expect(order).toEqual([...Array.from({ length: 5 }, () => 'connection'), 'a', 'b']);
});

/** Connects clients until all of them are connected, or for some time, and prints how many are. */
const CLIENTS = `
  const { connect } = require('node:net');
  let connected = 0;
  const end = () => { console.log(connected); process.exit(); };
  for (let n = 0; n < 1000; n++) connect(+process.argv[1], '127.0.0.1', () => ++connected === 1000 && end()).on('error', () => {});
  setTimeout(end, 20000);
`;
const somaxconn = Number(readFileSync('/proc/sys/net/core/somaxconn', 'utf8'));

test.skipIf(somaxconn < BACKLOG)('clients can connect while the process is busy', async () => {
  const http = createTestServer();
  server = http.app.server;
  const port = await http.listen(0, '127.0.0.1');
  // This blocks the process, so nothing is accepted in the meantime.
  expect(Number(execFileSync(process.execPath, ['-e', CLIENTS, `${port}`], { encoding: 'utf8' }))).toBe(1_000);
  await http.close();
});
