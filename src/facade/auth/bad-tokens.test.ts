import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { renderRequest, type TokenMaterial } from '../../../test/support/facade/bad-token.ts';
import { BAD_TOKENS } from '../../../test/support/facade/bad-tokens.ts';
import { startGuardedServer } from '../../../test/support/facade/guarded-server.ts';
import { startIssuer } from '../../../test/support/facade/issuer.ts';
import { exchange } from '../../../test/support/facade/raw-exchange.ts';

const TARGET = '/waas/producer/ten_1/catalog';

let material: TokenMaterial;
let server: Awaited<ReturnType<typeof startGuardedServer>>;
beforeAll(async () => {
  const [issuer, attacker] = await Promise.all([startIssuer(), startIssuer('RS256', 'theirs')]);
  material = { issuer, attacker };
  server = await startGuardedServer({ issuers: [issuer.url] });
});
afterAll(async () => {
  await server.close();
  await material.issuer.stop();
  await material.attacker.stop();
});

beforeEach(() => void server.reached.splice(0));

test('there are many tokens with unique names', () => {
  expect(new Set(BAD_TOKENS.map(({ name }) => name)).size).toBe(BAD_TOKENS.length);
  expect(BAD_TOKENS.length).toBeGreaterThan(120);
});

test.each(BAD_TOKENS)('$name: refused', async ({ make, statuses }) => {
  const parts = await make(material);
  const answer = await exchange(server.port, renderRequest(TARGET, parts));
  expect(server.reached).toEqual([]);
  expect(statuses).toContain(answer.status);
  if (answer.status === 0) return;
  expect(answer.headers['content-type']).toBe('application/problem+json');
  expect(JSON.parse(answer.body)).toMatchObject({ status: answer.status });
  // The response does not include any part of the request, decoded or not.
  const sent = (parts.headers ?? []).flatMap(line => line.split(/[ .:=]/)).filter(word => word.length > 20);
  const text = JSON.stringify(answer);
  for (const word of sent) {
    expect(text).not.toContain(word);
    expect(text).not.toContain(Buffer.from(word, 'base64url').toString().slice(0, 20));
  }
  const challenge = answer.headers['www-authenticate'];
  if (answer.status === 401) expect(challenge).toMatch(/^Bearer realm="sluice"/);
  // An error is named when credentials were sent, and only then (RFC 6750, section 3.1).
  const { code } = JSON.parse(answer.body) as { code: string };
  const named = /error="(\w+)", error_description="[\w ,()-]+"$/.exec(challenge ?? '')?.[1];
  expect([code, named]).toEqual([
    code,
    { missing_token: undefined, invalid_token: 'invalid_token', misplaced_token: 'invalid_request' }[code],
  ]);
});

test('the challenge and the document give the reason why a token is refused', async () => {
  const parts = { headers: [`Authorization: Bearer ${await material.issuer.sign({ exp: 1 })}`] };
  const { headers, body } = await exchange(server.port, renderRequest(TARGET, parts));
  const why = 'The token has expired or does not have an expiry';
  expect(headers['www-authenticate']).toBe(`Bearer realm="sluice", error="invalid_token", error_description="${why}"`);
  expect(JSON.parse(body)).toMatchObject({ code: 'invalid_token', detail: `${why}.` });
});

test('the reason for a token with a different audience names the expected one', async () => {
  const parts = { headers: [`Authorization: Bearer ${await material.issuer.sign({ aud: 'another' })}`] };
  const { headers, body } = await exchange(server.port, renderRequest(TARGET, parts));
  const why = 'The token has a different audience than sluice-tests';
  expect(headers['www-authenticate']).toContain(`error_description="${why}"`);
  expect(JSON.parse(body)).toMatchObject({ detail: `${why}.` });
});

test('never sends requests to the attacker', () => {
  expect(material.attacker.reads()).toBe(0);
});

test('a valid token is accepted with any notation of the scheme', async () => {
  for (const scheme of ['Bearer', 'bearer', 'BEARER', 'bEaReR']) {
    const parts = { headers: [`Authorization: ${scheme} ${await material.issuer.sign()}`] };
    expect(await exchange(server.port, renderRequest(TARGET, parts))).toMatchObject({ status: 200 });
  }
  expect(server.reached).toHaveLength(4);
});

test.each([
  ['an audience among others', { aud: ['other', 'sluice-tests'] }, {}],
  ['times with fractions', { exp: Math.floor(Date.now() / 1_000) + 299.5 }, {}],
  ['no nbf, no iat', { nbf: undefined, iat: undefined }, {}],
  ['no typ', {}, { typ: undefined }],
  ['typ of RFC 9068', {}, { typ: 'application/at+JWT' }],
  ['unknown claims', { __proto: 1, constructor: 'x', auth: { payload: 1 } }, {}],
  ['header members that are ignored', {}, { jku: 'http://127.0.0.1:1/', x5u: 'http://127.0.0.1:1/' }],
])('accepted: %s', async (_, claims, header) => {
  const parts = { headers: [`Authorization: Bearer ${await material.issuer.sign(claims, header)}`] };
  expect(await exchange(server.port, renderRequest(TARGET, parts))).toMatchObject({ status: 200 });
});
