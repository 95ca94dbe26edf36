import { get, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { renderRequest, type TokenMaterial } from '../../test/support/facade/bad-token.ts';
import { BAD_TOKENS } from '../../test/support/facade/bad-tokens.ts';
import { collectAudit } from '../../test/support/facade/collect-audit.ts';
import { AUDIENCE, startIssuer } from '../../test/support/facade/issuer.ts';
import { PATH_SPELLINGS } from '../../test/support/facade/path-spellings.ts';
import { exchange } from '../../test/support/facade/raw-exchange.ts';
import { createLogger } from '../telemetry/log.ts';
import { createRegistry } from '../telemetry/metrics.ts';
import { systemClock } from '../time/clock.ts';
import { createFacadeMetrics } from './facade-metrics.ts';
import type { Facade } from './objects/facade.ts';
import { ROUTES } from './routes.ts';
import { createFacadeServer, type FacadeServer } from './server.ts';

const TARGET = '/waas/producer/ten_0123456789abcdefghjk/catalog';

const log = createLogger({ level: 'silent' });
/** The parts of the facade that were used by the routes, apart from the log and the clock. */
const touched: string[] = [];
const facade = new Proxy({ log, clock: systemClock } as Facade, {
  get(target, name) {
    if (name === 'log' || name === 'clock') return target[name];
    touched.push(String(name));
    throw new Error('reached');
  },
});

let material: TokenMaterial;
let server: FacadeServer;
let port: number;
const registry = createRegistry();
beforeAll(async () => {
  const [issuer, attacker] = await Promise.all([startIssuer(), startIssuer('RS256', 'theirs')]);
  material = { issuer, attacker };
  const rules = { issuers: [issuer.url], audience: AUDIENCE, algorithms: ['RS256'], clockToleranceSeconds: 0 };
  server = createFacadeServer({
    facade,
    authentication: { ...rules, log },
    metrics: createFacadeMetrics(registry),
    audit: collectAudit().trail,
    version: '0.0.0',
    // Calls are never refused because of the load. On a busy machine, the event loop may be delayed.
    limits: { eventLoopDelayMs: 0 },
  });
  port = await server.listen(0, '127.0.0.1');
});
afterAll(async () => {
  await server.close();
  await material.issuer.stop();
  await material.attacker.stop();
});
beforeEach(() => void touched.splice(0));

const render = (method: string, target: string, ...headers: string[]) =>
  Buffer.from(`${[`${method} ${target} HTTP/1.1`, 'Host: x', 'Content-Length: 0', ...headers].join('\r\n')}\r\n\r\n`);

describe.each(ROUTES)('$method $path', ({ method, path }) => {
  const target = path.replaceAll('{tenant}', 'ten_0123456789abcdefghjk').replaceAll(/[{}]/g, '');

  test('without a token: 401, even if other parts of the request are wrong', async () => {
    const { status, headers, body } = await exchange(port, render(method, target));
    expect({ status, touched }).toEqual({ status: 401, touched: [] });
    expect(headers['www-authenticate']).toBe('Bearer realm="sluice"');
    expect(JSON.parse(body)).toMatchObject({ status: 401, code: 'missing_token' });
  });

  test('with an ingress key: 401', async () => {
    const answer = await exchange(port, render(method, target, 'x-api-key: 0123456789abcdefghjkmnpq'));
    expect({ status: answer.status, touched }).toEqual({ status: 401, touched: [] });
  });
});

test('a valid token passes the guard', async () => {
  const line = `Authorization: Bearer ${await material.issuer.sign()}`;
  expect(await exchange(port, render('GET', TARGET, line))).toMatchObject({ status: 500 });
  expect(touched).toEqual(['caches']);
});

/** The number of calls rejected because of their token so far. */
async function countRefused(): Promise<number> {
  const metric = await registry.getSingleMetric('sluice_facade_refused_tokens_total')?.get();
  return metric?.values.reduce((sum, { value }) => sum + value, 0) ?? 0;
}

test.each(BAD_TOKENS)('token, $name: refused', async ({ make, statuses }) => {
  const before = await countRefused();
  const { status, headers } = await exchange(port, renderRequest(TARGET, await make(material)));
  // Requests that are malformed or use an unsupported format are rejected before checking the token.
  if (status === 401) expect(await countRefused()).toBe(before + 1);
  expect(touched).toEqual([]);
  expect(statuses).toContain(status);
  if (status === 401) expect(headers['www-authenticate']).toMatch(/^Bearer realm="sluice"/);
  if (status !== 0) expect(headers['content-type']).toBe('application/problem+json');
});

test.each(PATH_SPELLINGS)(
  'path, $name: with a valid token, 5xx is only returned by the route',
  async ({ render: renderSpelling }) => {
    const line = `Authorization: Bearer ${await material.issuer.sign()}`;
    const { status } = await exchange(port, renderSpelling(TARGET, [line]));
    expect(status >= 500).toBe(touched.length > 0);
  },
);

test.each(['good', 'bad'])('with a %s token, each header is sent once', async kind => {
  const token = kind === 'good' ? await material.issuer.sign() : 'x';
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    get({ port, path: TARGET, headers: { authorization: `Bearer ${token}` } }, resolve).on('error', reject);
  });
  answer.resume();
  const names = answer.rawHeaders.filter((_, i) => i % 2 === 0).map(name => name.toLowerCase());
  expect(names).toEqual([...new Set(names)]);
  expect(names).toContain('x-content-type-options');
});

test.each(PATH_SPELLINGS)('path, $name: reaches nothing', async ({ render: renderSpelling }) => {
  const { status } = await exchange(port, renderSpelling(TARGET));
  expect(touched).toEqual([]);
  expect([0, 400, 401, 404, 405, 414, 417, 431]).toContain(status);
});
