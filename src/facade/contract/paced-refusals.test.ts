import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { CATALOG, createFacadeServers, problemOf } from '../../../test/support/facade/facade-server.ts';
import { startIssuer } from '../../../test/support/facade/issuer.ts';
import { exchange } from '../../../test/support/facade/raw-exchange.ts';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createPacedRefusals, MOST_REFUSED, REFUSED_CALLERS } from './paced-refusals.ts';

const ROUNDS = 20;

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
  const socket = { destroy: () => (state.isDestroyed = true) };
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
