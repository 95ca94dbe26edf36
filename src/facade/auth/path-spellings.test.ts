import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startGuardedServer } from '../../../test/support/facade/guarded-server.ts';
import { startIssuer, type TestIssuer } from '../../../test/support/facade/issuer.ts';
import { PATH_SPELLINGS } from '../../../test/support/facade/path-spellings.ts';
import { exchange } from '../../../test/support/facade/raw-exchange.ts';

const PATH = '/waas/producer/ten_1/catalog';

let issuer: TestIssuer;
let server: Awaited<ReturnType<typeof startGuardedServer>>;
beforeAll(async () => {
  issuer = await startIssuer();
  server = await startGuardedServer({ issuers: [issuer.url] });
});
afterAll(async () => {
  await server.close();
  await issuer.stop();
});
beforeEach(() => void server.reached.splice(0));

test('there are many paths with unique names', () => {
  expect(new Set(PATH_SPELLINGS.map(({ name }) => name)).size).toBe(PATH_SPELLINGS.length);
  expect(PATH_SPELLINGS.length).toBeGreaterThan(180);
});

describe('without a token', () => {
  test.each(PATH_SPELLINGS)('$name: reaches nothing', async ({ render }) => {
    const { status, headers } = await exchange(server.port, render(PATH));
    expect(server.reached).toEqual([]);
    // Either closed without a response, rejected, or not found.
    expect([0, 400, 401, 404, 417, 431]).toContain(status);
    if (status === 401) expect(headers['www-authenticate']).toBe('Bearer realm="sluice"');
  });
});

describe('with a good token', () => {
  test.each(PATH_SPELLINGS)('$name: no 5xx', async ({ render }) => {
    const line = `Authorization: Bearer ${await issuer.sign()}`;
    const { status } = await exchange(server.port, render(PATH, [line]));
    expect(status).toBeLessThan(500);
    // A response with status 200 was returned by exactly one handler.
    expect(server.reached).toHaveLength(status === 200 ? 1 : 0);
  });

  test('the plain path reaches the handler, with the target as it was sent', async () => {
    const target = `${PATH}?name=a%2Fb%20c&x=%25`;
    const bytes = `GET ${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${await issuer.sign()}\r\n\r\n`;
    expect(await exchange(server.port, bytes)).toMatchObject({ status: 200 });
    expect(server.reached).toMatchObject([{ target, identity: { issuer: issuer.url, subject: 'ada' } }]);
  });
});
