import { beforeAll, describe, expect, test } from 'vitest';
import { CATALOG, type StartedFacade, useFacadeServers } from '../../test/support/facade/facade-server.ts';
import { exchange, type RawAnswer } from '../../test/support/facade/raw-exchange.ts';
import { Refusal } from '../http/refusal.ts';
import { PATH_PARAMETERS, type PathParameter } from './contract/fields.ts';
import { ROUTES } from './routes.ts';

const facades = useFacadeServers();
/** A server whose callers own all resources. */
let open: StartedFacade;
/** A server whose callers do not own any resources. */
let closed: StartedFacade;
beforeAll(async () => {
  open = await facades.start({ eventLoopDelayMs: 0 });
  closed = await facades.start({ eventLoopDelayMs: 0 }, async () => {
    throw new Refusal('forbidden');
  });
});

/** Returns the responses to GET and HEAD, without headers that differ for each response. */
async function askBoth(port: number, path: string, bytesOf: (line: string) => Promise<string>) {
  const answers: Omit<RawAnswer, 'body'>[] = [];
  const bodies: string[] = [];
  for (const method of ['GET', 'HEAD']) {
    const { status, headers, body } = await exchange(port, await bytesOf(`${method} ${path}`));
    const { date: _date, 'x-request-id': _id, ...same } = headers;
    answers.push({ status, headers: same });
    bodies.push(body);
  }
  return { get: answers[0], head: answers[1], bodies };
}

const close = 'Connection: close';
const withToken = (line: string) => facades.request(line, [close]);
const withoutToken = async (line: string) => `${line} HTTP/1.1\r\nHost: x\r\n${close}\r\n\r\n`;
const withoutLimit = (answer: Omit<RawAnswer, 'body'> | undefined) => ({
  status: answer?.status,
  headers: Object.fromEntries(Object.entries(answer?.headers ?? {}).filter(([name]) => !name.startsWith('ratelimit'))),
});

test('HEAD has the same response as GET, without the body', async () => {
  const { get, head, bodies } = await askBoth(open.port, CATALOG, withToken);
  const empty = '{"data":[],"nextCursor":null}';
  expect(bodies).toEqual([empty, '']);
  expect(get).toMatchObject({ status: 200, headers: { 'content-length': `${empty.length}` } });
  expect(withoutLimit(head)).toEqual(withoutLimit(get));
});

describe('HEAD requires the same permissions as GET', () => {
  const read = ROUTES.filter(({ method }) => method === 'GET');
  const targetOf = (path: string) =>
    path.replaceAll(/\{(\w+)\}/g, (_, name: PathParameter) => `${PATH_PARAMETERS[name].meta()?.example}`);

  test.each(read)('a token, for $path', async ({ path }) => {
    const { get, head, bodies } = await askBoth(open.port, targetOf(path), withoutToken);
    expect(get?.status).toBe(401);
    expect(head).toEqual(get);
    expect(bodies[1]).toBe('');
  });

  test.each(read.filter(({ access }) => access !== 'caller'))('an owner, for $path', async ({ path }) => {
    const { get, head, bodies } = await askBoth(closed.port, targetOf(path), withToken);
    expect(get?.status).toBe(403);
    expect(withoutLimit(head)).toEqual(withoutLimit(get));
    expect(bodies[1]).toBe('');
  });
});

test('HEAD counts as the GET of its route in metrics', async () => {
  const { port, registry } = await facades.start({ eventLoopDelayMs: 0 });
  for (const method of ['HEAD', 'GET', 'HEAD']) {
    expect((await exchange(port, await withToken(`${method} ${CATALOG}`))).status).toBe(200);
  }
  const metrics = await registry.metrics();
  expect(metrics).toContain(
    'sluice_facade_request_duration_seconds_count{route="GET /waas/producer/:tenant/catalog",status="200"} 3',
  );
  expect(metrics).not.toContain('route="HEAD');
});

test('HEAD is counted by the rate limit', async () => {
  const { port } = await facades.start({ eventLoopDelayMs: 0, pointsPerMinute: 2 });
  const statuses: number[] = [];
  for (const method of ['HEAD', 'GET', 'HEAD', 'GET']) {
    statuses.push((await exchange(port, await withToken(`${method} ${CATALOG}`))).status);
  }
  expect(statuses).toEqual([200, 200, 429, 429]);
});

test('HEAD results in 405 for a path that can only be written', async () => {
  const { status, headers } = await exchange(open.port, await withToken('HEAD /waas/streams'));
  expect([status, headers['allow']]).toEqual([405, 'PUT']);
});
