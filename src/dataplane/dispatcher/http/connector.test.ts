import type { LookupAddress } from 'node:dns';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createSecureContext } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { createNetworkPolicy } from '../../../core/delivery/network.ts';
import { startFarEndpoint } from '../testing/far-endpoint.ts';
import { createConnector } from './connector.ts';

/** Opens a connection to a name with these addresses. */
function open(addresses: readonly (string | LookupAddress)[], port: number, connectTimeoutMs = 5_000) {
  const connect = createConnector({
    policy: createNetworkPolicy({ allowedNetworks: ['127.0.0.0/8', '::1'] }),
    connectTimeoutMs,
    secureContext: createSecureContext(),
    resolveName: (_name, _options, done) =>
      done(
        null,
        addresses.map(each =>
          typeof each === 'string' ? { address: each, family: each.includes(':') ? 6 : 4 } : each,
        ),
      ),
  });
  let cancel = () => {};
  const opened = new Promise<string>(resolve => {
    const target = { hostname: 'partner.test', port, tls: false };
    cancel = connect(target, {}, (error, socket) => {
      if (socket === null) return resolve(error?.reason ?? '');
      onTestFinished(() => void socket.destroy());
      resolve(socket.remoteAddress ?? '');
    });
  });
  return { opened, cancel };
}

/** Listens on a port of an address. If it is 0, this is any free port. */
async function listen(port: number, address: string) {
  const sockets: Socket[] = [];
  const server = createServer(socket => sockets.push(socket.on('error', () => {})));
  server.listen(port, address);
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port };
}

/** Returns the number of connections that are being opened in this process. */
async function opening(): Promise<number> {
  // A connection attempt ends in the turn of the event loop after its socket was closed.
  await nextTurn();
  await nextTurn();
  return process.getActiveResourcesInfo().filter(kind => kind === 'ConnectWrap').length;
}

test('an address that is far away is reached even if all other addresses fail', async () => {
  const far = await startFarEndpoint(400);
  onTestFinished(far.close);
  expect(await open(['127.0.0.1', '127.0.0.2', '::1'], far.port).opened).toBe('127.0.0.1');
});

test('an address that does not respond does not delay the next one for long, and is closed', async () => {
  const far = await startFarEndpoint(60_000);
  onTestFinished(far.close);
  await listen(far.port, '127.0.0.2');
  const before = await opening();
  const startedMs = performance.now();
  expect(await open(['127.0.0.1', '127.0.0.2'], far.port).opened).toBe('127.0.0.2');
  expect(performance.now() - startedMs).toBeGreaterThan(240);
  expect(await opening()).toBeLessThanOrEqual(before);
});

test('an address that fails is followed by the next one immediately', async () => {
  const { port } = await listen(0, '127.0.0.3');
  const refusing = Array.from({ length: 7 }, (_, n) => `127.0.1.${n}`);
  // If each of them took 250 ms, there would be no time left.
  expect(await open([...refusing, '127.0.0.3'], port, 1_700).opened).toBe('127.0.0.3');
});

test('only the first eight addresses of a name are tried', async () => {
  const { port } = await listen(0, '127.0.0.3');
  const refusing = Array.from({ length: 8 }, (_, n) => `127.0.1.${n}`);
  expect(await open([...refusing, '127.0.0.3'], port).opened).toBe('connection_refused');
});

test('address families alternate, so that one of them can fail', async () => {
  const far = await startFarEndpoint(60_000);
  onTestFinished(far.close);
  await listen(far.port, '127.0.0.2');
  const silent = Array.from({ length: 7 }, () => '127.0.0.1');
  // Not all machines have IPv6, so this address only counts as one.
  const other = { address: '127.0.0.2', family: 6 };
  expect(await open([...silent, other], far.port, 1_700).opened).toBe('127.0.0.2');
});

test('if all addresses fail, the reason is that of the first', async () => {
  const { port } = await listen(0, '127.0.0.3');
  // Other tests do not listen on these addresses.
  expect(await open(['127.0.0.4', '127.0.0.5'], port).opened).toBe('connection_refused');
  expect(await open(['255.255.255.255', '127.0.0.4'], port).opened).toBe('connection_refused');
  expect(await open(['255.255.255.255'], port).opened).toBe('address_refused');
  expect(await open([], port).opened).toBe('dns_failed');
});

test('all attempts end with the timeout, or if the connection is canceled', async () => {
  const far = await startFarEndpoint(60_000);
  onTestFinished(far.close);
  const before = await opening();
  const same = Array.from({ length: 12 }, () => '127.0.0.1');
  expect(await open(same, far.port, 600).opened).toBe('connect_timeout');
  expect(await opening()).toBeLessThanOrEqual(before);
  const { opened, cancel } = open(same, far.port);
  setTimeout(cancel, 300);
  expect(await opened).toBe('connect_failed');
  expect(await opening()).toBeLessThanOrEqual(before);
});
