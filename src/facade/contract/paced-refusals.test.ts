import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setImmediate as nextIteration } from 'node:timers/promises';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { CATALOG, createFacadeServers, problemOf } from '../../../test/support/facade/facade-server.ts';
import { startIssuer } from '../../../test/support/facade/issuer.ts';
import { exchange } from '../../../test/support/facade/raw-exchange.ts';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createPacedRefusals, MOST_REFUSED, REFUSED_CALLERS } from './paced-refusals.ts';

const ROUNDS = 20;
/** Enough for a busy machine. */
const SOON = { timeout: 20_000, interval: 5 };

test.each<[string, readonly string[] | undefined]>([
  ['address', []],
  ['caller', undefined],
])(
  'the calls of an %s that are beyond the limit of their caller are refused at a limited rate',
  async (_of, proxies) => {
    const issuer = await startIssuer();
    const facades = createFacadeServers(issuer);
    const { server, port } = await facades.start({ eventLoopDelayMs: 0, pointsPerMinute: 1 }, undefined, proxies);
    const request = await facades.request(`GET ${CATALOG}`);
    expect((await exchange(port, request)).status).toBe(200);
    const startedMs = performance.now();
    const calls = Array.from({ length: ROUNDS * REFUSED_CALLERS.atOnce }, () => exchange(port, request));
    for (const answer of await Promise.all(calls)) expect(problemOf(answer)).toBe('429 rate_limited');
    // Timers can be up to a millisecond early.
    expect(performance.now() - startedMs).toBeGreaterThan((ROUNDS - 1) * (REFUSED_CALLERS.everyMs - 1));
    await server.close();
    await issuer.stop();
  },
);

/** Returns a response, and whether its connection was closed. */
function responseOf(closed = false) {
  const state = { isDestroyed: false };
  const socket = { destroy: () => (state.isDestroyed = true), pause: () => {}, resume: () => {} };
  return { state, response: { closed, req: { socket } } as unknown as ServerResponse };
}

test('a client is refused once per period, and a client that has left does not delay the next call', async () => {
  const clock = createManualClock();
  const refuse = createPacedRefusals({ atOnce: 1, everyMs: 16, clock });
  const refused: string[] = [];
  for (const [name, isClosed] of [
    ['first', false],
    ['left', true],
    ['second', false],
    ['third', false],
  ] as const) {
    refuse('client', responseOf(isClosed).response, () => refused.push(name));
  }
  await clock.advance(0);
  expect(refused).toEqual(['first']);
  await clock.advance(16);
  expect(refused).toEqual(['first', 'second']);
  await clock.advance(15);
  expect(refused).toEqual(['first', 'second']);
  await clock.advance(1);
  expect(refused).toEqual(['first', 'second', 'third']);
});

test('connections of refused calls are closed if too many of them are waiting', () => {
  const refuse = createPacedRefusals({ atOnce: 1, everyMs: 16, clock: createManualClock() });
  const calls = Array.from({ length: 2 * MOST_REFUSED }, () => responseOf());
  for (const { response } of calls) refuse('client', response, () => {});
  const open = calls.filter(({ state }) => !state.isDestroyed);
  // The first call does not wait.
  expect([MOST_REFUSED, MOST_REFUSED + 1]).toContain(open.length);
});

test('clients that leave while they wait are noticed in their turns, and not all at the same time', async () => {
  const CLIENTS = 40;
  const clock = createManualClock();
  const refuse = createPacedRefusals({ atOnce: 1, everyMs: 16, clock });
  let arrived = 0;
  const server = createServer((_request, response) => {
    arrived++;
    refuse('client', response, () => response.writeHead(429).end());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const open = () => promisify(server.getConnections.bind(server))();
  const body = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}';
  const sockets = Array.from({ length: CLIENTS }, () =>
    connect(port, '127.0.0.1', function (this: Socket) {
      this.resume().write(body);
    }),
  );
  await expect.poll(() => arrived, SOON).toBe(CLIENTS);
  await nextIteration();
  await Promise.all(sockets.map(socket => once(socket.destroy(), 'close')));
  // The first one did not wait.
  await expect.poll(open, SOON).toBe(CLIENTS - 1);
  await new Promise(resolve => setTimeout(resolve, 50));
  expect(await open()).toBe(CLIENTS - 1);
  // A client that has left does not use up a turn.
  await clock.advance(16);
  await expect.poll(open, SOON).toBe(0);
  server.close();
});
