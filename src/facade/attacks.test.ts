import { beforeAll, describe, expect, test } from 'vitest';
import { CATALOG, JSON_BODY, TENANT, useFacadeServers } from '../../test/support/facade/facade-server.ts';
import { exchange } from '../../test/support/facade/raw-exchange.ts';
import { Refusal } from '../http/refusal.ts';
import type { Identity } from './auth/identity.ts';
import { describeRoutes } from './openapi.ts';
import { ROUTES } from './routes.ts';

const OTHER = 'ten_zzzzzzzzzzzzzzzzzzzz';
const close = 'Connection: close';

const facades = useFacadeServers();
let port: number;
/** Ids for which the owner was looked up. The caller owns one of these ids. */
const asked: string[] = [];
beforeAll(async () => {
  const workspace = { metadata: { name: 'shop' }, spec: { account: 'shop' } };
  const tenant = async (_identity: Identity, publicId: string) => {
    asked.push(publicId);
    if (publicId !== TENANT) throw new Refusal('forbidden');
    return { publicId, name: 'shop', workspace, role: 'Owner' };
  };
  ({ port } = await facades.start(
    { eventLoopDelayMs: 0, requestTimeoutMs: 2_000, headersTimeoutMs: 2_000 },
    undefined,
    undefined,
    {
      ownership: { tenant },
    },
  ));
});

const send = async (line: string, headers: readonly string[] = [], body = '') =>
  exchange(port, await facades.request(line, [close, ...headers], body));
const withBody = (body: string) => [JSON_BODY, `Content-Length: ${Buffer.byteLength(body)}`];

describe('a call that pretends to be another one', () => {
  test.each(['X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override', 'X-Original-URL', 'X-Rewrite-URL'])(
    '%s changes nothing',
    async name => {
      const plain = await send(`GET ${CATALOG}`);
      const value = name.includes('URL') ? '/waas/workspaces' : 'DELETE';
      expect(await send(`GET ${CATALOG}`, [`${name}: ${value}`])).toMatchObject({ status: 200, body: plain.body });
    },
  );

  test.each([
    ['%2f..%2f', `/waas/producer/${TENANT}%2f..%2f${OTHER}/catalog`],
    ['%252f..%252f', `/waas/producer/${TENANT}%252f..%252f${OTHER}/catalog`],
    ['%5c..%5c', `/waas/producer/${TENANT}%5c..%5c${OTHER}/catalog`],
    ['/../', `/waas/producer/${OTHER}/../${TENANT}/catalog`],
    ['/%2e%2e/', `/waas/producer/${OTHER}/%2e%2e/${TENANT}/catalog`],
    ['NUL', `/waas/producer/${TENANT}%00/catalog`],
    ['a space', `/waas/producer/${TENANT}%20/catalog`],
    ['a line break', `/waas/producer/${TENANT}%0d%0aX-A:1/catalog`],
    ['a matrix parameter', `/waas/producer/${TENANT};v=1/catalog`],
    ['upper case', `/waas/producer/${TENANT.toUpperCase()}/catalog`],
    ['wide letters', `/waas/producer/${encodeURIComponent(TENANT.replace('ten', 'ｔｅｎ'))}/catalog`],
    ['a soft hyphen', `/waas/producer/${TENANT}%c2%ad/catalog`],
    ['two ids', `/waas/producer/${TENANT},${OTHER}/catalog`],
    ['__proto__', '/waas/producer/__proto__/catalog'],
    ['constructor', '/waas/producer/constructor/catalog'],
    ['a property of every object', '/waas/toString'],
  ])('an id with %s is not found', async (_, path) => {
    asked.splice(0);
    const { status } = await send(`GET ${path}`);
    expect([400, 404]).toContain(status);
    expect(asked).toEqual([]);
  });

  test.each(['__proto__', 'constructor', 'toString', '..%2f..%2fpackage.json', '%2e%2e/secret'])(
    'the pages that need no token do not have %s',
    async name => {
      for (const folder of ['problems', 'docs/static', 'docs']) {
        const { status, body } = await exchange(port, `GET /${folder}/${name} HTTP/1.1\r\nHost: x\r\n${close}\r\n\r\n`);
        expect([400, 404], folder).toContain(status);
        expect(body).not.toContain('"dependencies"');
      }
    },
  );
});

describe('a query', () => {
  test.each([
    '_method=DELETE',
    '__proto__=x',
    '__proto__[limit]=1',
    'constructor=1',
    'constructor.prototype.x=1',
    'toString=1',
    `tenant=${OTHER}`,
    `producerTenantPublicId=${OTHER}`,
    'limit[]=1',
    'limit[$gt]=1',
    'LIMIT=1',
    'limit%00=1',
    '=1',
  ])('with %s is refused by its name', async query => {
    const { status, body } = await send(`GET ${CATALOG}?${query}`);
    expect([status, (JSON.parse(body) as { code: string }).code]).toEqual([422, 'invalid_request']);
  });

  test.each([
    'limit=1&limit=2',
    'limit=1&limit=1',
    'limit=1,2',
    'limit=1%00',
    'limit=1e1',
    'limit=0x10',
    'limit=%EF%BC%91',
    'limit=',
    'limit=-1',
    'limit=1;limit=2',
  ])('with %s is refused by its value', async query => {
    const { status, body } = await send(`GET ${CATALOG}?${query}`);
    expect(status).toBe(422);
    expect(JSON.parse(body)).toMatchObject({ errors: [{ parameter: 'limit' }] });
  });
});

describe('a body', () => {
  const DOCUMENT = describeRoutes(ROUTES, '0.0.0');
  const packages = `POST /waas/producer/${TENANT}/packages`;

  /** Object schemas that accept unknown fields. */
  function openObjects(schema: unknown, at: string): string[] {
    if (typeof schema !== 'object' || schema === null) return [];
    const { $ref, ...rest } = schema as Record<string, unknown>;
    const found =
      typeof $ref === 'string' ? DOCUMENT.components?.schemas?.[$ref.split('/').at(-1) as string] : undefined;
    if (found !== undefined) return openObjects(found, at);
    const isOpen = 'properties' in rest && rest['additionalProperties'] !== false;
    const within = Object.entries(rest).flatMap(([name, value]) => openObjects(value, `${at}/${name}`));
    return isOpen ? [at, ...within] : within;
  }

  test('takes no fields of any object in it but those that its schema names', () => {
    const schemas = ROUTES.flatMap(({ path, method, operation }) => {
      const schema = DOCUMENT.paths[path]?.[method.toLowerCase()]?.requestBody?.content['application/json']?.schema;
      return schema === undefined ? [] : [[operation, schema] as const];
    });
    expect(schemas.length).toBeGreaterThan(15);
    expect(schemas.flatMap(([operation, schema]) => openObjects(schema, operation))).toEqual([]);
  });

  test.each(['role', 'owners', 'account', 'status', 'spec', 'metadata', 'publicId', 'key', 'resourceVersion'])(
    'cannot set %s of a package',
    async name => {
      const body = JSON.stringify({ name: 'a', [name]: 'x' });
      const answer = await send(packages, withBody(body), body);
      expect(answer.status).toBe(422);
      expect(JSON.parse(answer.body)).toMatchObject({ errors: [{ pointer: `/${name}` }] });
    },
  );

  test.each([
    ['{"__proto__":{"name":"a"}}', 400],
    ['{"\\u005f_proto__":{"name":"a"}}', 400],
    ['{"constructor":{"prototype":{"name":"a"}}}', 422],
    ['{"name":{"__proto__":null}}', 400],
    ['{"name":"a","name":1}', 422],
    ['{"name":1e999}', 422],
    ['[{"name":"a"}]', 422],
    ['"name"', 422],
    [`${'['.repeat(4_000)}${']'.repeat(4_000)}`, 422],
    ['{"name":"a"}{"name":"b"}', 400],
    ['\ufeff{"name":"a"}', 400],
    ['{"name":"a",}', 400],
    ["{'name':'a'}", 400],
    ['{"name":NaN}', 400],
    ['/**/{"name":"a"}', 400],
  ])('of %s is refused', async (body, status) => {
    const answer = await exchange(port, Buffer.from(await facades.request(packages, [close, ...withBody(body)], body)));
    expect(answer.status).toBe(status);
  });

  test.each([
    'application/jsonp',
    'application/json-patch+json',
    'application/merge-patch+json',
    'text/json',
    'text/plain; application/json',
    'multipart/form-data; boundary=application/json',
    'application/x-www-form-urlencoded; charset=application/json',
    'application/json, text/html',
    '*/*',
    'json',
  ])('of the type %s is not read', async type => {
    const { status } = await send(packages, [`Content-Type: ${type}`, 'Content-Length: 2'], '{}');
    expect(status).toBe(415);
  });
});
