import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import {
  ACCOUNT,
  CATALOG,
  INTEGRATION,
  JSON_BODY,
  problemOf,
  type StartedFacade,
  TENANT,
  useFacadeServers,
} from '../../../test/support/facade/facade-server.ts';
import { exchange, type RawAnswer } from '../../../test/support/facade/raw-exchange.ts';
import { publicId } from '../../core/ids/ids.ts';
import { cursorOf } from '../../core/ids/list-cursor.ts';
import { Refusal } from '../../http/refusal.ts';
import { chargeLookup } from '../caches/lookups.ts';
import { quotaOf } from './rate-limit.ts';

/** Enough for a busy machine. */
const SOON = { timeout: 20_000 };

const facades = useFacadeServers();
let facade: StartedFacade;

const start = async (pointsPerMinute: number, accountPointsPerMinute = 1_000) => {
  facade = await facades.start({
    eventLoopDelayMs: 0,
    pointsPerMinute,
    accountPointsPerMinute: () => accountPointsPerMinute,
  });
};
const call = async (line: string, headers: readonly string[] = [], body = '', subject = 'ada') =>
  exchange(facade.port, await facades.request(line, headers, body, subject));

/** The remaining points of a response for each limit, after checking that the fields are well-formed and consistent. */
function leftOf({ headers }: RawAnswer): Record<string, string> {
  const policies = [...(headers['ratelimit-policy'] ?? '').matchAll(/"(\w+)";q=(\d+);w=(?:10|60)(?:, |$)/g)];
  const limits = [...(headers['ratelimit'] ?? '').matchAll(/"(\w+)";r=(\d+);t=(\d+)(?:, |$)/g)];
  expect(limits.map(([, name]) => name)).toEqual(policies.map(([, name]) => name));
  expect(policies.map(([item]) => item).join('')).toBe(headers['ratelimit-policy']);
  expect(limits.map(([item]) => item).join('')).toBe(headers['ratelimit']);
  for (const [, , , seconds] of limits) {
    expect(Number(seconds)).toBeGreaterThan(0);
    expect(Number(seconds)).toBeLessThanOrEqual(60);
  }
  return Object.fromEntries(limits.map(([, name, left], i) => [name, `${left}/${policies[i]?.[2]}`]));
}

test('every answer to a caller contains the remaining points', async () => {
  await start(7);
  const answers = [
    await call(`GET ${CATALOG}`),
    await call(`GET ${CATALOG}?unknown=1`),
    await call('PUT /waas/streams', [JSON_BODY, 'Content-Encoding: gzip', 'Content-Length: 2'], '{}'),
    await call('PUT /waas/streams', [JSON_BODY, 'Content-Length: 1'], '{'),
    await call('GET /waas/nothing'),
    await call(`PATCH ${CATALOG}`),
    await call(`GET ${CATALOG}`),
  ];
  expect(answers.map(({ status }) => status)).toEqual([200, 422, 415, 400, 404, 405, 200]);
  expect(answers.map(answer => leftOf(answer)['caller'])).toEqual([6, 5, 4, 3, 2, 1, 0].map(left => `${left}/7`));
});

test('429 contains the time to wait, and keeps Retry-After', async () => {
  await start(1);
  await call(`GET ${CATALOG}`);
  const refused = await call(`GET ${CATALOG}`);
  expect(problemOf(refused)).toBe('429 rate_limited');
  expect(leftOf(refused)).toEqual({ caller: '0/1' });
  expect(refused.headers['ratelimit']).toBe(`"caller";r=0;t=${refused.headers['retry-after']}`);
  expect(await facade.registry.metrics()).toContain('sluice_facade_limited_total{limit="caller"} 1');
  expect(leftOf(await call(`GET ${CATALOG}`, [], '', 'eve'))).toMatchObject({ caller: '0/1' });
});

test('there are no headers of older drafts, and none for unknown callers', async () => {
  await start(3);
  const names = ({ headers }: RawAnswer) => Object.keys(headers).filter(name => name.includes('ratelimit'));
  expect(names(await call(`GET ${CATALOG}`)).toSorted()).toEqual(['ratelimit', 'ratelimit-policy']);
  expect(names(await exchange(facade.port, `GET ${CATALOG} HTTP/1.1\r\nHost: x\r\n\r\n`))).toEqual([]);
  expect(names(await exchange(facade.port, 'GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n'))).toEqual([]);
});

const EXPLAIN = `/waas/producer/${TENANT}/explain`;
const SKIP = `/waas/integrations/${INTEGRATION}/skip`;
const EVENTS = `/waas/integrations/${INTEGRATION}/events`;

test('a call costs the points of its route before anything is read', async () => {
  await start(24);
  const left: (string | undefined)[] = [];
  for (const line of [`GET ${CATALOG}`, `GET ${EVENTS}`, `HEAD ${EVENTS}`, `GET ${EXPLAIN}`, 'GET /waas/nothing']) {
    left.push(leftOf(await call(line, ['Connection: close']))['caller']);
  }
  expect(left).toEqual(['23/24', '18/24', '13/24', '3/24', '2/24']);
  const refused = await call(`POST ${SKIP}`);
  expect(problemOf(refused)).toBe('429 rate_limited');
  expect(refused.body).toContain('The call costs 10 of the 24 points that the caller has in 60 s, and 2 are left.');
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(16);
  expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(20);
  expect((await call(`GET ${CATALOG}`)).status).toBe(200);
});

test('callers of an account share its points, and cannot use those of others', async () => {
  await start(20, 3);
  const as = async (subject: string, line = `GET ${CATALOG}`) => call(line, [], '', subject);
  expect(leftOf(await as('ada'))).toEqual({ caller: '19/20', account: '2/3' });
  expect(leftOf(await as('eve'))).toEqual({ caller: '19/20', account: '1/3' });
  expect(leftOf(await as('bob', `GET /waas/accounts/${ACCOUNT}`))).toMatchObject({ account: '0/3' });
  const refused = await as('dan');
  expect(problemOf(refused)).toBe('429 rate_limited');
  expect(leftOf(refused)).toEqual({ caller: '19/20', account: '0/3' });
  expect(refused.body).toContain('The call costs 1 of the 3 points that the account has in 60 s, and 0 are left.');
  const id = publicId('Account', '', 'shop');
  expect(refused.body).toContain(
    `The limit requestsPerMinute of account ${id} is 3. Ask the operator of this Sluice to raise requestsPerMinute for account ${id}.`,
  );
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(15);
  expect(leftOf(await as('ada', 'GET /waas/nothing'))).toEqual({ caller: '18/20' });
});

test('an account at the highest limit of the installation does not receive the advice to request a higher one', async () => {
  const limits = { eventLoopDelayMs: 0, accountPointsPerMinute: () => 1 };
  facade = await facades.start(limits, undefined, undefined, { ceilings: { requestsPerMinute: 1 } });
  await call(`GET ${CATALOG}`);
  const refused = await call(`GET ${CATALOG}`);
  expect(problemOf(refused)).toBe('429 rate_limited');
  expect(refused.body).toMatch(/is 1\. The installation does not allow a higher limit \(SLUICE_MAX_LIMITS\)/);
});

test('a limit of the account is in force from the next call, and an account without one has no points to take', async () => {
  let points: number | undefined = 10;
  facade = await facades.start({ eventLoopDelayMs: 0, accountPointsPerMinute: () => points });
  const left = async () => leftOf(await call(`GET ${CATALOG}`))['account'];
  for (let used = 1; used <= 10; used++) expect(await left()).toBe(`${10 - used}/10`);
  expect(problemOf(await call(`GET ${CATALOG}`))).toBe('429 rate_limited');
  points = 6_000;
  await delay(30);
  expect(await left()).toMatch(/^\d+\/1000$/);
  points = undefined;
  const unlimited = await call(`GET ${CATALOG}`);
  expect([unlimited.status, Object.keys(leftOf(unlimited))]).toEqual([200, ['caller']]);
});

test.each([
  // The points of one minute, but at most 1,000.
  [10, 10, 60],
  [1_000, 1_000, 60],
  // The points of 10 s, but at least 1,000.
  [3_000, 1_000, 20],
  [3_500, 1_050, 18],
  [6_000, 1_000, 10],
  [30_000, 5_000, 10],
  [60_000, 10_000, 10],
])('%i points per minute are %i at once, which come back within %i s', (perMinute, points, windowSeconds) => {
  expect(quotaOf('caller', perMinute)).toEqual({ name: 'caller', points, windowSeconds });
});

test('at most the points of the policy are used at once, and not those of a minute', async () => {
  await start(6_000, 30_000);
  const startedMs = performance.now();
  let used = 0;
  let answer = await call(`GET ${EXPLAIN}`);
  expect(answer.headers['ratelimit-policy']).toMatch(/^"caller";q=1000;w=10(, "account";q=5000;w=10)?$/);
  for (; answer.status !== 429; used += 10) answer = await call(`GET ${EXPLAIN}`);
  expect(used).toBeGreaterThanOrEqual(1_000);
  expect(used).toBeLessThanOrEqual(1_000 + (performance.now() - startedMs) / 10);
});

describe('a list that looks at many pages', () => {
  const SUBSCRIPTION = 'sub_0123456789abcdefghjk';
  const EVENTS = `GET /waas/integrations/${INTEGRATION}/events?subscription=${SUBSCRIPTION}&state=dead`;
  /** An inbox of unlimited length, without any event in the requested state. */
  async function startWithInbox(pointsPerMinute: number, accountPointsPerMinute: number) {
    const looked: (string | undefined)[] = [];
    const list = async (_inbox: unknown, { cursor }: { cursor?: string }) => {
      looked.push(cursor);
      return { answer: 'OK', events: [], cursor: `${looked.length}` };
    };
    const subscription = { metadata: { uid: 'u' }, spec: { producer: 'shop', integration: 'shop' } };
    const caches = { assertCurrent: () => undefined, find: async () => subscription };
    const parts = { inboxes: { list }, caches };
    const limits = { eventLoopDelayMs: 0, pointsPerMinute, accountPointsPerMinute: () => accountPointsPerMinute };
    facade = await facades.start(limits, undefined, undefined, parts);
    return looked;
  }

  test('costs more, and ends early where the points do', async () => {
    const looked = await startWithInbox(45, 1_000);
    const answer = await call(EVENTS);
    const last = cursorOf(['events', SUBSCRIPTION], '5');
    expect([answer.status, JSON.parse(answer.body)]).toEqual([200, { data: [], nextCursor: last, resumeCursor: last }]);
    expect(looked).toEqual([undefined, '1', '2', '3', '4']);
    expect(leftOf(answer)).toEqual({ caller: '0/45', account: '955/1000' });
    expect(problemOf(await call(EVENTS))).toBe('429 rate_limited');
  });

  test('takes no points of the caller where the account has none', async () => {
    const looked = await startWithInbox(1_000, 16);
    expect(leftOf(await call(EVENTS))).toEqual({ caller: '985/1000', account: '1/16' });
    expect(looked).toHaveLength(2);
  });

  test('looks at 20 pages at most', async () => {
    const looked = await startWithInbox(1_000, 1_000);
    expect(leftOf(await call(EVENTS))).toEqual({ caller: '805/1000', account: '805/1000' });
    expect(looked).toHaveLength(20);
  });
});

test('a caller without access takes no points of the account', async () => {
  const refusing = { eventLoopDelayMs: 0, pointsPerMinute: 20, accountPointsPerMinute: () => 3 };
  facade = await facades.start(refusing, async () => {
    throw new Refusal('forbidden');
  });
  for (let calls = 1; calls <= 5; calls++) {
    const refused = await call(`GET ${CATALOG}`);
    expect(problemOf(refused)).toBe('403 forbidden');
    expect(leftOf(refused)).toEqual({ caller: `${20 - calls}/20` });
  }
});

test('an id that requires the API server costs 20 more points', async () => {
  const asked: string[] = [];
  facade = await facades.start({ eventLoopDelayMs: 0, pointsPerMinute: 50 }, async ({ subject }) => {
    chargeLookup();
    asked.push(subject);
    throw new Refusal('forbidden');
  });
  for (const left of [29, 8]) {
    const refused = await call(`GET ${CATALOG}`);
    expect(problemOf(refused)).toBe('403 forbidden');
    expect(leftOf(refused)).toEqual({ caller: `${left}/50` });
    expect(refused.headers['ratelimit']).toMatch(/^"caller";[^"]*$/);
  }
  const refused = await call(`GET ${CATALOG}`);
  expect(problemOf(refused)).toBe('429 rate_limited');
  expect(leftOf(refused)).toEqual({ caller: '7/50' });
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(10);
  expect(refused.body).toContain('costs 20 of the 50 points');
  expect(problemOf(await call(`GET ${CATALOG}`, [], '', 'eve'))).toBe('403 forbidden');
  expect(asked).toEqual(['ada', 'ada', 'eve']);
});

describe('with trusted proxies', () => {
  const from = (address: string) => `X-Forwarded-For: 198.51.100.1, ${address}`;
  const bare = async (line: string, address: string) =>
    exchange(facade.port, [`${line} HTTP/1.1`, 'Host: x', from(address), '', ''].join('\r\n'));

  test('an address without points is refused before its token is looked at, and others are not', async () => {
    facade = await facades.start({ eventLoopDelayMs: 0, addressPointsPerMinute: 4 }, undefined, ['127.0.0.1']);
    for (const [line, expected] of [
      [`GET ${CATALOG}`, '401 missing_token'],
      ['GET /waas/nothing', '401 missing_token'],
      ['GET /nothing', '404 not_found'],
    ] as const) {
      expect(problemOf(await bare(line, '203.0.113.9'))).toBe(expected);
    }
    expect((await bare('GET /openapi.json', '203.0.113.9')).status).toBe(200);
    const valid = await call(`GET ${CATALOG}`, [from('203.0.113.9')]);
    for (const refused of [valid, await bare('GET /docs', '203.0.113.9'), await bare('GET /', '203.0.113.9')]) {
      expect(problemOf(refused)).toBe('429 rate_limited');
      expect(leftOf(refused)).toEqual({ address: '0/4' });
      expect(refused.body).toContain('The call costs 1 of the 4 points that the address has in 60 s, and 0 are left.');
      expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
      expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(15);
    }
    const other = await call(`GET ${CATALOG}`, [from('203.0.113.10')]);
    expect(other.status).toBe(200);
    expect(leftOf(other)).toEqual({ address: '3/4', caller: '999/1000', account: '4999/5000' });
    expect(await facade.registry.metrics()).toContain('sluice_facade_limited_total{limit="address"} 3');
  });

  test('the header of a connection that is not from a proxy does not count', async () => {
    facade = await facades.start({ eventLoopDelayMs: 0, addressPointsPerMinute: 1 }, undefined, []);
    expect(problemOf(await bare(`GET ${CATALOG}`, '203.0.113.9'))).toBe('401 missing_token');
    expect(problemOf(await bare(`GET ${CATALOG}`, '203.0.113.10'))).toBe('429 rate_limited');
  });

  test('an address with too many calls in progress is refused until one of them ends, and others are not', async () => {
    const started: (() => void)[] = [];
    const hold = () => new Promise<void>(resolve => started.push(resolve));
    facade = await facades.start({ eventLoopDelayMs: 0, addressCalls: 2 }, hold, ['127.0.0.1']);
    const held = [1, 2].map(() => call(`GET ${CATALOG}`, [from('203.0.113.9')]));
    await vi.waitFor(() => expect(started).toHaveLength(2), SOON);
    const refused = await bare(`GET ${CATALOG}`, '203.0.113.9');
    expect(problemOf(refused)).toBe('429 rate_limited');
    expect(refused.headers['retry-after']).toBe('1');
    expect(refused.body).toContain('2 calls from your address are in progress, which is the limit.');
    expect(await facade.registry.metrics()).toContain('sluice_facade_limited_total{limit="concurrency"} 1');
    expect(problemOf(await bare(`GET ${CATALOG}`, '203.0.113.10'))).toBe('401 missing_token');
    started[0]?.();
    await Promise.race(held);
    await vi.waitFor(
      async () => expect(problemOf(await bare(`GET ${CATALOG}`, '203.0.113.9'))).toBe('401 missing_token'),
      SOON,
    );
    started[1]?.();
    await Promise.all(held);
  });

  test('a refused call has the headers of all responses, and is counted as a response', async () => {
    facade = await facades.start({ eventLoopDelayMs: 0, addressPointsPerMinute: 1 }, undefined, ['127.0.0.1']);
    await bare('GET /nothing', '203.0.113.9');
    const { headers } = await bare('HEAD /waas/streams', '203.0.113.9');
    expect(headers).toMatchObject({
      'cache-control': 'no-store',
      'content-type': 'application/problem+json',
      'x-content-type-options': 'nosniff',
      'x-request-id': expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    expect(headers['connection']).not.toBe('close');
    expect(await facade.registry.metrics()).toMatch(/route="none",status="429"[^\n]*} 1\n/);
  });

  test('connections of an address beyond the limit are closed, but not those of a proxy', async () => {
    const open = async () => {
      const socket = connect(facade.port, '127.0.0.1');
      socket.on('error', () => undefined);
      const isClosed = await new Promise<boolean>(resolve => {
        socket.on('close', () => resolve(true));
        socket.write('GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n');
        socket.once('data', () => resolve(false));
      });
      return { socket, isClosed };
    };
    facade = await facades.start({ eventLoopDelayMs: 0, addressConnections: 2 }, undefined, []);
    const [first, second, third] = [await open(), await open(), await open()];
    expect([first, second, third].map(({ isClosed }) => isClosed)).toEqual([false, false, true]);
    first.socket.destroy();
    await vi.waitFor(async () => expect((await open()).isClosed).toBe(false), SOON);
    second.socket.destroy();
    await facade.server.close();
    facade = await facades.start({ eventLoopDelayMs: 0, addressConnections: 2 }, undefined, ['127.0.0.1']);
    for (let n = 0; n < 4; n++) expect((await open()).isClosed).toBe(false);
  });

  test('a call whose client has disconnected no longer counts', async () => {
    const started: (() => void)[] = [];
    const hold = () => new Promise<void>(resolve => started.push(resolve));
    facade = await facades.start({ eventLoopDelayMs: 0, addressCalls: 1 }, hold, ['127.0.0.1']);
    const socket = connect(facade.port, '127.0.0.1');
    socket.write(await facades.request(`GET ${CATALOG}`, [from('203.0.113.9')]));
    await vi.waitFor(() => expect(started).toHaveLength(1), SOON);
    expect(problemOf(await bare('GET /nothing', '203.0.113.9'))).toBe('429 rate_limited');
    socket.destroy();
    await vi.waitFor(
      async () => expect(problemOf(await bare('GET /nothing', '203.0.113.9'))).toBe('404 not_found'),
      SOON,
    );
    started[0]?.();
  });
});
