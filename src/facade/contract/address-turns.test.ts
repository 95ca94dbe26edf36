import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, Socket } from 'node:net';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { CATALOG, createFacadeServers } from '../../../test/support/facade/facade-server.ts';
import { startIssuer } from '../../../test/support/facade/issuer.ts';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createClientAddress } from '../../http/client-address.ts';
import { createAddressTurns } from './address-turns.ts';
import { MOST_REFUSED, REFUSED_ADDRESSES } from './paced-refusals.ts';

/** Enough for a busy machine. */
const SOON = { timeout: 20_000 };

const { atOnce: REFUSED_AT_ONCE, everyMs: REFUSED_EVERY_MS } = REFUSED_ADDRESSES;

const CALLS = 240;

test('a call does not wait for the earlier calls of another address', async () => {
  const issuer = await startIssuer();
  const facades = createFacadeServers(issuer);
  const reached: string[] = [];
  const facade = await facades.start({ eventLoopDelayMs: 0 }, async identity => void reached.push(identity.subject), [
    '127.0.0.1',
  ]);
  const callOf = async (subject: string, address: string) =>
    facades.request(`GET ${CATALOG}`, [`X-Forwarded-For: ${address}`], '', subject);
  const flood = await callOf('eve', '203.0.113.9');
  const call = await callOf('ada', '203.0.113.10');
  const evil = Array.from({ length: CALLS }, () => connect(facade.port, '127.0.0.1'));
  const other = connect(facade.port, '127.0.0.1');
  await Promise.all(evil.map(socket => once(socket, 'connect')));
  // The issuer's keys have been read, and the token has been verified, before the flood.
  other.write(call);
  await once(other, 'data');
  reached.length = 0;
  // A busy machine can transfer the call later than the flood, so this counts from the arrival of the call.
  let reachedAtArrival = 0;
  const noteArrival = (message: unknown) => {
    const { request } = message as { request: IncomingMessage };
    if (request.socket.remotePort === other.localPort) reachedAtArrival = reached.length;
  };
  subscribe('http.server.request.start', noteArrival);
  for (const socket of evil) socket.write(flood);
  other.write(call);
  await vi.waitFor(() => expect(reached).toContain('ada'), SOON);
  unsubscribe('http.server.request.start', noteArrival);
  expect(reached.indexOf('ada') - reachedAtArrival).toBeLessThan(CALLS / 6);
  for (const socket of evil) socket.destroy();
  other.destroy();
  await facade.server.close();
  await issuer.stop();
});

test('connections take turns if addresses are not used', async () => {
  const turns = createAddressTurns({ addressOf: undefined });
  const order: string[] = [];
  const start = (name: string, socket: Socket) =>
    turns.start({ socket } as IncomingMessage, {} as ServerResponse, () => order.push(name));
  const [flood, other] = [new Socket(), new Socket()];
  for (let n = 0; n < 20; n++) start('flood', flood);
  start('other', other);
  await vi.waitFor(() => expect(order).toHaveLength(21), SOON);
  expect(order.indexOf('other')).toBeLessThan(3);
});

describe('refused calls', () => {
  const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
  let server: Server;
  const sockets: Socket[] = [];
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
    server.close();
  });

  /** Starts a server that refuses each call in its turn. */
  async function start() {
    const clock = createManualClock();
    const turns = createAddressTurns({ addressOf: createClientAddress([]), clock });
    let [arrived, refused] = [0, 0];
    server = createServer((request, response) => {
      arrived++;
      turns.refuse(request, response, () => {
        refused++;
        response.end();
      });
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const open = () => {
      const socket = connect(port, '127.0.0.1').on('error', () => {});
      sockets.push(socket);
      return socket;
    };
    const arrive = (count: number) => vi.waitFor(() => expect(arrived).toBe(count), SOON);
    return { clock, open, arrive, refused: () => refused };
  }

  test('receive responses at a limited rate', async () => {
    const { clock, open, arrive, refused } = await start();
    for (let n = 0; n < 3 * REFUSED_AT_ONCE; n++) open().write(REQUEST);
    await arrive(3 * REFUSED_AT_ONCE);
    for (let rounds = 1; rounds <= 3; rounds++) {
      await vi.waitFor(() => expect(refused()).toBe(rounds * REFUSED_AT_ONCE), SOON);
      await clock.advance(REFUSED_EVERY_MS - 1);
      expect(refused()).toBe(rounds * REFUSED_AT_ONCE);
      await clock.advance(1);
    }
  });

  test('do not delay others if their client has disconnected', async () => {
    const { clock, open, arrive, refused } = await start();
    const waiting = Array.from({ length: 2 * REFUSED_AT_ONCE }, open);
    for (const socket of waiting) socket.write(REQUEST);
    await arrive(2 * REFUSED_AT_ONCE);
    await vi.waitFor(() => expect(refused()).toBe(REFUSED_AT_ONCE), SOON);
    for (const socket of waiting) socket.destroy();
    open().write(REQUEST);
    await arrive(2 * REFUSED_AT_ONCE + 1);
    await clock.advance(REFUSED_EVERY_MS);
    await vi.waitFor(() => expect(refused()).toBe(REFUSED_AT_ONCE + 1), SOON);
  });

  test('lose their connection if there are too many of them', async () => {
    const { open } = await start();
    const socket = open();
    socket.resume().write(REQUEST.repeat(REFUSED_AT_ONCE + MOST_REFUSED + 1));
    await once(socket, 'close');
  });
});
