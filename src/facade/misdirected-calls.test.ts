import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { collectAudit } from '../../test/support/facade/collect-audit.ts';
import { AUDIENCE, startIssuer, type TestIssuer } from '../../test/support/facade/issuer.ts';
import { exchange, type RawAnswer } from '../../test/support/facade/raw-exchange.ts';
import { PROBLEMS } from '../core/problems/problems.ts';
import { createLogger } from '../telemetry/log.ts';
import { createRegistry } from '../telemetry/metrics.ts';
import { systemClock } from '../time/clock.ts';
import { createFacadeMetrics } from './facade-metrics.ts';
import type { Facade } from './objects/facade.ts';
import { createFacadeServer, type FacadeServer } from './server.ts';

const log = createLogger({ level: 'silent' });
const json = 'Content-Type: application/json';

let issuer: TestIssuer;
let server: FacadeServer;
let port: number;
beforeAll(async () => {
  issuer = await startIssuer();
  const facade = {
    log,
    clock: systemClock,
    caches: { assertCurrent: () => undefined },
    ownership: {
      integration: async (_identity: unknown, publicId: string) => ({ publicId, recipient: { role: 'Owner' } }),
    },
  } as unknown as Facade;
  server = createFacadeServer({
    facade,
    authentication: { issuers: [issuer.url], audience: AUDIENCE, algorithms: ['RS256'], clockToleranceSeconds: 0, log },
    metrics: createFacadeMetrics(createRegistry()),
    audit: collectAudit().trail,
    version: '0.0.0',
    limits: { eventLoopDelayMs: 0 },
  });
  port = await server.listen(0, '127.0.0.1');
});
afterAll(async () => {
  await server.close();
  await issuer.stop();
});

async function request(line: string, headers: readonly string[] = [], body = ''): Promise<string> {
  const token = await issuer.sign({ sub: 'ada' });
  const head = [`${line} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${token}`, ...headers];
  return `${head.join('\r\n')}\r\n\r\n${body}`;
}

function problemOf({ status, headers, body }: RawAnswer): string {
  expect(headers['content-type']).toBe('application/problem+json');
  return `${status} ${(JSON.parse(body) as { code: string }).code}`;
}

describe('a call to the wrong address', () => {
  test.each([
    ['POST /events/ten_0123456789abcdefghjk/orders', 'Send events to the address of ingress, with the same path.'],
    ['GET /waas/workspaces/', 'remove the last slash'],
    ['GET /openapi.json/', 'Remove the slash'],
    ['GET /problems/none', 'This problem does not exist. For all problems, see /problems/.'],
  ])('%s: 404 contains the correct path', async (line, words) => {
    const answer = await exchange(port, await request(line));
    expect(problemOf(answer)).toBe('404 not_found');
    expect(JSON.parse(answer.body)).toMatchObject({ detail: expect.stringContaining(words) });
  });

  test('a method that is not supported results in 405, unless no route has such a path', async () => {
    const answer = await exchange(port, await request('POST /problems/none'));
    expect([problemOf(answer), answer.headers['allow']]).toEqual(['405 method_not_allowed', 'GET, HEAD']);
    expect(problemOf(await exchange(port, await request('POST /problems/no%6ee')))).toBe('404 not_found');
  });

  test('the type of a problem refers to its page, for all callers', async () => {
    const refused = await exchange(port, 'GET /waas/workspaces HTTP/1.1\r\nHost: x\r\n\r\n');
    const { type, code } = JSON.parse(refused.body) as { type: string; code: string };
    expect([type, code]).toEqual(['/problems/missing_token', 'missing_token']);
    const page = await exchange(port, `GET ${type} HTTP/1.1\r\nHost: x\r\n\r\n`);
    expect([page.status, page.headers['content-type'], page.body]).toEqual([
      200,
      'text/plain; charset=utf-8',
      expect.stringMatching(
        /^missing_token \(401\)\n\nA bearer token is required\.\n\nWhat to do: Send an access token/,
      ),
    ]);
  });

  test.each(['/problems/', '/problems'])('%s lists all problems, and each of them has its page', async path => {
    const list = await exchange(port, `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
    expect([list.status, list.headers['content-type']]).toEqual([200, 'text/plain; charset=utf-8']);
    const paths = [...list.body.matchAll(/^\d{3} (\S+): .+$/gm)].map(([, page]) => page ?? '');
    expect(paths.toSorted()).toEqual(
      Object.keys(PROBLEMS)
        .map(code => `/problems/${code}`)
        .toSorted(),
    );
    for (const page of paths) {
      const { status, body } = await exchange(port, `GET ${page} HTTP/1.1\r\nHost: x\r\n\r\n`);
      expect([page, status, body]).toEqual([page, 200, expect.stringContaining('see /problems/.')]);
    }
  });

  test('a body that is not accepted results in the name of the call that accepts one', async () => {
    const line =
      'POST /waas/integrations/int_0123456789abcdefghjk/events/evt_0123456789abcdefghjk000000000000000/replay';
    const body = '{"dryRun":true}';
    const answer = await exchange(port, await request(line, [json, `Content-Length: ${body.length}`], body));
    expect(problemOf(answer)).toBe('422 invalid_request');
    expect(answer.body).toContain('use POST /waas/integrations/{integration}/replay');
  });
});

test.each(['Host: y', 'host: x', 'HOST: y, z'])('a call with a second Host field (%s) is refused', async field => {
  const answer = await exchange(port, await request('GET /waas/workspaces', [field]));
  expect(problemOf(answer)).toBe('400 malformed_request');
  expect(answer.headers['connection']).toBe('close');
  expect(answer.body).toContain('a single Host header');
});
