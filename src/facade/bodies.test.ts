import { beforeAll, describe, expect, test } from 'vitest';
import {
  JSON_BODY,
  problemOf,
  type StartedFacade,
  TENANT,
  useFacadeServers,
} from '../../test/support/facade/facade-server.ts';
import { exchange, type RawAnswer } from '../../test/support/facade/raw-exchange.ts';
import { PATH_PARAMETERS, type PathParameter } from './contract/fields.ts';
import { ROUTES } from './routes.ts';

const facades = useFacadeServers();
let facade: StartedFacade;
beforeAll(async () => {
  facade = await facades.start({ eventLoopDelayMs: 0, requestTimeoutMs: 60_000 });
});

const send = async (line: string, headers: readonly string[], body = '') =>
  exchange(facade.port, await facades.request(line, headers, body));

const PACKAGES = `/waas/producer/${TENANT}/packages`;

test('a call that waits for 100 Continue is refused without it, or gets it before its body', async () => {
  const head = ['PUT /waas/streams HTTP/1.1', 'Host: x', 'Expect: 100-continue', 'Content-Length: 2'];
  const refused = await exchange(facade.port, `${head.join('\r\n')}\r\n\r\n`);
  expect(problemOf(refused)).toBe('401 missing_token');
  expect(refused.headers['connection']).toBe('close');
  const tooLarge = await send('PUT /waas/streams', [JSON_BODY, 'Expect: 100-continue', 'Content-Length: 9999999']);
  expect([problemOf(tooLarge), tooLarge.headers['connection']]).toEqual(['413 body_too_large', 'close']);
  const read = await send('PUT /waas/streams', [JSON_BODY, 'Expect: 100-continue', 'Content-Length: 2'], '{}');
  expect([problemOf(read), read.headers['connection']]).toEqual(['422 invalid_request', 'keep-alive']);
});

describe('a compressed body', () => {
  test.each(['gzip', 'GZIP', 'br', 'zstd', 'x-made-up', 'identity, gzip', 'gzip, identity', '"identity"'])(
    'Content-Encoding: %s is refused before the body is there, and the problem names the header',
    async coding => {
      const answer = await send('PUT /waas/streams', [JSON_BODY, `Content-Encoding: ${coding}`, 'Content-Length: 100']);
      expect(problemOf(answer)).toBe('415 unsupported_media_type');
      expect(answer.headers['accept-encoding']).toBe('identity');
      expect((JSON.parse(answer.body) as { detail: string }).detail).toContain('Content-Encoding');
    },
  );

  test.each(['identity', 'Identity', '', 'identity, identity'])('Content-Encoding: %j is none', async coding => {
    const headers = [JSON_BODY, `Content-Encoding: ${coding}`, 'Content-Length: 2'];
    expect(problemOf(await send(`POST ${PACKAGES}`, headers, '{}'))).toBe('422 invalid_request');
  });

  test('is only reported to callers with a token on an existing route', async () => {
    const headers = ['Content-Encoding: gzip', 'Content-Length: 0'];
    const bare = ['PUT /waas/streams HTTP/1.1', 'Host: x', ...headers].join('\r\n');
    expect(problemOf(await exchange(facade.port, `${bare}\r\n\r\n`))).toBe('401 missing_token');
    expect(problemOf(await send('PUT /waas/nothing', headers))).toBe('404 not_found');
  });
});

test.each([
  ['gzip, chunked', '415 unsupported_media_type'],
  ['identity, chunked', '415 unsupported_media_type'],
  ['chunked, gzip', '400 malformed_request'],
  ['gzip', '400 malformed_request'],
])('a body with Transfer-Encoding: %s is refused', async (coding, expected) => {
  const headers = [JSON_BODY, 'Connection: close', `Transfer-Encoding: ${coding}`];
  const answer = await send(`POST ${PACKAGES}`, headers, '2\r\n{}\r\n0\r\n\r\n');
  expect(problemOf(answer)).toBe(expected);
});

describe('a content type', () => {
  const integration = PATH_PARAMETERS.integration.meta()?.example;
  const blocks = `/waas/producer/${TENANT}/integrations/${integration}/blocks`;
  const block = `POST ${blocks}/packages/${PATH_PARAMETERS.pkg.meta()?.example}`;
  const plain = async (line: string) => (await send(line, ['Content-Length: 0'])).status;

  test.each(['application/x-www-form-urlencoded', 'text/plain', 'not a type', ''])(
    '%j of an empty body is ignored',
    async type => {
      for (const line of [block, `POST ${PACKAGES}`, block.replace('POST', 'DELETE')]) {
        const answer = await send(line, [`Content-Type: ${type}`, 'Content-Length: 0']);
        expect(answer.status).toBe(await plain(line));
      }
      expect(await plain(`POST ${PACKAGES}`)).toBe(422);
      expect(await plain(block)).not.toBe(415);
    },
  );

  test('is not required for an empty body of unknown length', async () => {
    const chunked = ['Transfer-Encoding: chunked'];
    for (const line of [block, `POST ${PACKAGES}`, block.replace('POST', 'DELETE')]) {
      for (const more of [[], ['Content-Type: text/plain'], [JSON_BODY]]) {
        const answer = await send(line, [...more, ...chunked], '0\r\n\r\n');
        expect(answer.status, `${line} ${more}`).toBe(await plain(line));
      }
    }
    expect(problemOf(await send(block, chunked, '1\r\n{\r\n'))).toBe('415 unsupported_media_type');
  });

  test.each([
    ['Content-Length: 2', '{}'],
    ['Transfer-Encoding: chunked', '2\r\n{}\r\n0\r\n\r\n'],
  ])('other than JSON is refused for a body: %s', async (length, body) => {
    expect(problemOf(await send(block, ['Content-Type: text/plain', length], body))).toBe('415 unsupported_media_type');
  });
});

describe('a body above the limit of its route', () => {
  /** Routes that accept a list or a schema. All other routes accept 16 KiB. */
  const LARGE = ['applyStream', 'subscribe', 'changeSubscription', 'acknowledgeEvents', 'replaceMembers'];
  const written = ROUTES.filter(({ method }) => method !== 'GET').map(({ method, path, operation }) => ({
    operation,
    line: `${method} ${path.replaceAll(/\{(\w+)\}/g, (_, name: PathParameter) => `${PATH_PARAMETERS[name].meta()?.example}`)}`,
    most: LARGE.includes(operation) ? 1_048_576 : 16_384,
  }));

  function expectRefusal(answer: RawAnswer, most: number): void {
    expect(problemOf(answer)).toBe('413 body_too_large');
    const { detail } = JSON.parse(answer.body) as { detail: string };
    expect(detail).toBe(`Send at most ${most.toLocaleString('en')} bytes to this route.`);
  }

  test('is 1 MiB for the routes that take lists or schemas', () => {
    expect(written.filter(({ most }) => most === 1_048_576)).toHaveLength(LARGE.length);
  });

  test.each(written)('$operation: announced, before it is there', async ({ line, most }) => {
    expectRefusal(await send(line, [JSON_BODY, `Content-Length: ${most + 1}`]), most);
  });

  test.each(written)('$operation: in chunks that do not end', async ({ line, most }) => {
    const chunk = `${(most + 1).toString(16)}\r\n${' '.repeat(most + 1)}\r\n`;
    expectRefusal(await send(line, [JSON_BODY, 'Transfer-Encoding: chunked'], chunk), most);
  });

  test.each(written)('$operation: a body of just the limit is read, announced or in chunks', async ({ line, most }) => {
    const body = `"${'x'.repeat(most - 2)}"`;
    const chunks = `${most.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
    expect((await send(line, [JSON_BODY, `Content-Length: ${most}`], body)).status).toBe(422);
    expect((await send(line, [JSON_BODY, 'Transfer-Encoding: chunked'], chunks)).status).toBe(422);
  });
});
