import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createSecureContext } from 'node:tls';
import { afterEach, expect, test } from 'vitest';
import { createNetworkPolicy } from '../../../core/delivery/network.ts';
import { startFarEndpoint } from '../testing/far-endpoint.ts';
import { createConnector } from './connector.ts';

const closing: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** Opens a connection to a name with these addresses. */
function open(addresses: readonly string[], port: number, connectTimeoutMs = 5_000) {
  const connect = createConnector({
    policy: createNetworkPolicy({ allowedNetworks: ['127.0.0.0/8', '::1'] }),
    connectTimeoutMs,
    secureContext: createSecureContext(),
    resolveName: (_name, _options, done) =>
      done(
        null,
        addresses.map(address => ({ address, family: address.includes(':') ? 6 : 4 })),
      ),
  });
  let cancel = () => {};
  const opened = new Promise<string>(resolve => {
    const target = { hostname: 'partner.test', port, tls: false };
    cancel = connect(target, {}, (error, socket) => {
      if (socket === null) return resolve(error?.reason ?? '');
      closing.push(() => void socket.destroy());
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
  closing.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port };
}

test('an address that is far away is reached even if all other addresses fail', async () => {
  const far = await startFarEndpoint(400);
  closing.push(far.close);
  expect(await open(['127.0.0.1', '127.0.0.2', '::1'], far.port).opened).toBe('127.0.0.1');
});

test('an address that does not respond does not delay the next one for long, and is closed', async () => {
  const far = await startFarEndpoint(60_000);
  closing.push(far.close);
  await listen(far.port, '127.0.0.2');
  const startedMs = performance.now();
  expect(await open(['127.0.0.1', '127.0.0.2'], far.port).opened).toBe('127.0.0.2');
  expect(performance.now() - startedMs).toBeGreaterThan(240);
  expect(process.getActiveResourcesInfo().filter(kind => kind === 'TCPConnectWrap')).toEqual([]);
});

test('an address that fails is followed by the next one immediately', async () => {
  const { port } = await listen(0, '127.0.0.3');
  const refusing = ['127.0.0.4', '127.0.0.5', '127.0.0.6'];
  expect(await open([...refusing, '127.0.0.3'], port, 240).opened).toBe('127.0.0.3');
});

test('address families alternate, so that one of them can fail', async () => {
  const far = await startFarEndpoint(60_000);
  closing.push(far.close);
  await listen(far.port, '::1');
  const silent = Array.from({ length: 4 }, () => '127.0.0.1');
  expect(await open([...silent, '::1'], far.port, 700).opened).toBe('::1');
});

test('if all addresses fail, the reason is that of the first', async () => {
  const { port } = await listen(0, '127.0.0.3');
  expect(await open(['127.0.0.1', '127.0.0.2'], port).opened).toBe('connection_refused');
  expect(await open(['255.255.255.255', '127.0.0.1'], port).opened).toBe('connection_refused');
  expect(await open(['255.255.255.255'], port).opened).toBe('address_refused');
  expect(await open([], port).opened).toBe('dns_failed');
});

test('all attempts end with the timeout, or if the connection is canceled', async () => {
  const far = await startFarEndpoint(60_000);
  closing.push(far.close);
  // Nothing else listens on this port.
  const same = Array.from({ length: 12 }, () => '127.0.0.1');
  expect(await open(same, far.port, 600).opened).toBe('connect_timeout');
  const { opened, cancel } = open(same, far.port);
  setTimeout(cancel, 300);
  expect(await opened).toBe('connect_failed');
  expect(process.getActiveResourcesInfo().filter(kind => kind === 'TCPConnectWrap')).toEqual([]);
});
