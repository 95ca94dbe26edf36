import { expect, test } from 'vitest';
import { CATALOG, createFacadeServers, problemOf } from '../../../test/support/facade/facade-server.ts';
import { startIssuer } from '../../../test/support/facade/issuer.ts';
import { exchange } from '../../../test/support/facade/raw-exchange.ts';
import { REFUSED_CALLERS } from './paced-refusals.ts';

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
