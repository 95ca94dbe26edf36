import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import {
  CATALOG,
  createFacadeServers,
  type FacadeServers,
  JSON_BODY,
  problemOf,
  type StartedFacade,
} from '../../../test/support/facade/facade-server.ts';
import { startIssuer, type TestIssuer } from '../../../test/support/facade/issuer.ts';
import { exchange, type RawAnswer } from '../../../test/support/facade/raw-exchange.ts';

let issuer: TestIssuer;
let facades: FacadeServers;
let facade: StartedFacade;
beforeAll(async () => {
  issuer = await startIssuer();
  facades = createFacadeServers(issuer);
});
afterEach(() => facade.server.close());
afterAll(() => issuer.stop());

const start = async (callsPerMinute: number) => {
  facade = await facades.start({ eventLoopDelayMs: 0, callsPerMinute });
};
const call = async (line: string, headers: readonly string[] = [], body = '', subject = 'ada') =>
  exchange(facade.port, await facades.request(line, headers, body, subject));

/** How many calls an answer says are left, when the fields are well formed and agree with each other. */
function leftOf({ headers }: RawAnswer, calls: number): number {
  expect(headers['ratelimit-policy']).toBe(`"caller";q=${calls};w=60`);
  const [, left, seconds] = /^"caller";r=(\d+);t=(\d+)$/.exec(headers['ratelimit'] ?? '') ?? [];
  expect(Number(seconds)).toBeGreaterThan(0);
  expect(Number(seconds)).toBeLessThanOrEqual(60);
  return Number(left);
}

test('every answer to a caller says how many calls are left, whatever its status', async () => {
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
  expect(answers.map(answer => leftOf(answer, 7))).toEqual([6, 5, 4, 3, 2, 1, 0]);
});

test('429 says when to come again, and keeps Retry-After', async () => {
  await start(1);
  await call(`GET ${CATALOG}`);
  const refused = await call(`GET ${CATALOG}`);
  expect(problemOf(refused)).toBe('429 rate_limited');
  expect(leftOf(refused, 1)).toBe(0);
  expect(refused.headers['ratelimit']).toBe(`"caller";r=0;t=${refused.headers['retry-after']}`);
  expect(leftOf(await call(`GET ${CATALOG}`, [], '', 'eve'), 1)).toBe(0);
});

test('the fields of older drafts are gone, and answers to nobody have none', async () => {
  await start(3);
  const names = ({ headers }: RawAnswer) => Object.keys(headers).filter(name => name.includes('ratelimit'));
  expect(names(await call(`GET ${CATALOG}`)).toSorted()).toEqual(['ratelimit', 'ratelimit-policy']);
  expect(names(await exchange(facade.port, `GET ${CATALOG} HTTP/1.1\r\nHost: x\r\n\r\n`))).toEqual([]);
  expect(names(await exchange(facade.port, 'GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n'))).toEqual([]);
});
