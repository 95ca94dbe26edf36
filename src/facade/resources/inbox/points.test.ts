import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import {
  createFacadeServers,
  type FacadeServers,
  INTEGRATION,
  JSON_BODY,
  problemOf,
  type StartedFacade,
} from '../../../../test/support/facade/facade-server.ts';
import { startIssuer, type TestIssuer } from '../../../../test/support/facade/issuer.ts';
import { exchange } from '../../../../test/support/facade/raw-exchange.ts';
import { systemClock } from '../../../time/clock.ts';

/** The points of calls that keep Redis busy for longer than others. */

const SUBSCRIPTION = 'sub_0123456789abcdefghjk';
const POINTS = 300;

let issuer: TestIssuer;
let facades: FacadeServers;
let facade: StartedFacade;
let calls: string[];
beforeAll(async () => {
  issuer = await startIssuer();
  facades = createFacadeServers(issuer);
});
afterEach(() => facade.server.close());
afterAll(() => issuer.stop());

/** A facade with an inbox in which everything is found, and recovery goes on as long as it may. */
async function start(): Promise<void> {
  calls = [];
  const subscription = { metadata: { uid: 'u' }, spec: { producer: 'shop', integration: 'shop' } };
  const price = async () => {
    calls.push('price');
    return { answer: 'OK', events: [], tokens: 0 };
  };
  const recover = async (_inbox: unknown, { mayGoOn }: { mayGoOn: () => boolean }) => {
    do calls.push('recover');
    while (mayGoOn());
    return { answer: 'OK', recovered: 0, replayRequired: 0, cursor: 'c' };
  };
  const parts = {
    caches: { assertCurrent: () => undefined, get: () => undefined, find: async () => subscription },
    replays: { price, start: price },
    recovery: { recover },
    clock: systemClock,
  };
  const limits = { eventLoopDelayMs: 0, pointsPerMinute: POINTS, accountPointsPerMinute: () => 1_000 };
  facade = await facades.start(limits, undefined, undefined, parts);
}

async function post(path: string, content: object) {
  const body = JSON.stringify(content);
  const headers = [JSON_BODY, `Content-Length: ${body.length}`];
  const line = `POST /waas/integrations/${INTEGRATION}/${path}`;
  const answer = await exchange(facade.port, await facades.request(line, headers, body));
  return { answer, left: /"caller";r=(\d+)/.exec(answer.headers['ratelimit'] ?? '')?.[1] };
}

test('a dry run of a replay costs a hundred points, and looks for nothing without them', async () => {
  await start();
  const range = { subscription: SUBSCRIPTION, since: '2026-01-01T00:00:00Z', until: '2026-02-01T00:00:00Z' };
  const dryRun = () => post('replay', { ...range, dryRun: true });
  for (const left of ['200', '100', '0']) {
    const priced = await dryRun();
    expect([priced.answer.status, priced.left]).toEqual([200, left]);
  }
  expect(problemOf((await dryRun()).answer)).toBe('429 rate_limited');
  expect(calls).toEqual(['price', 'price', 'price']);
});

test('a range that cannot be paid for is not searched, even if there are points for the call', async () => {
  await start();
  const range = { subscription: SUBSCRIPTION, since: '2026-01-01T00:00:00Z', until: '2026-02-01T00:00:00Z' };
  await post(`subscriptions/${SUBSCRIPTION}/recover`, { since: '2026-01-01T00:00:00Z' });
  calls = [];
  const refused = await post('replay', range);
  expect(problemOf(refused.answer)).toBe('429 rate_limited');
  expect(refused.answer.body).toContain('Searching a range costs 90 more points');
  expect(calls).toEqual([]);
});

test('recovering costs more for each further page, and ends where the points do', async () => {
  await start();
  const { answer, left } = await post(`subscriptions/${SUBSCRIPTION}/recover`, { since: '2026-01-01T00:00:00Z' });
  // 10 for the call, and 30 for each of 9 more pages.
  expect([answer.status, left, calls.length]).toEqual([202, '20', 10]);
});
