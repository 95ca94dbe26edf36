import { beforeAll, describe, expect, test } from 'vitest';
import { JSON_BODY, problemOf, useFacadeServers } from '../../test/support/facade/facade-server.ts';
import { exchange } from '../../test/support/facade/raw-exchange.ts';
import { PROBLEMS } from '../core/problems/problems.ts';

const { start, request } = useFacadeServers();
let port: number;
beforeAll(async () => {
  ({ port } = await start({ eventLoopDelayMs: 0 }));
});

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
    const answer = await exchange(port, await request(line, [JSON_BODY, `Content-Length: ${body.length}`], body));
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
