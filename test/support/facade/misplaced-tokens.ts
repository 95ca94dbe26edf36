import { type BadToken, placed } from './bad-token.ts';

/** Valid tokens in the wrong place, or combined with another token. */
export const MISPLACED_TOKENS: readonly BadToken[] = [
  placed('nothing at all', [401], () => ({})),
  placed('an empty header', [401], () => ({ headers: ['Authorization:'] })),
  placed('the scheme alone', [401], () => ({ headers: ['Authorization: Bearer'] })),
  placed('without a scheme', [401], async m => ({ headers: [`Authorization: ${await m.issuer.sign()}`] })),
  placed('as Basic', [401], async m => ({ headers: [`Authorization: Basic ${await m.issuer.sign()}`] })),
  placed('as DPoP', [401], async m => ({ headers: [`Authorization: DPoP ${await m.issuer.sign()}`, 'DPoP: x'] })),
  placed('as Token', [401], async m => ({ headers: [`Authorization: Token ${await m.issuer.sign()}`] })),
  placed('as Bearer:', [401], async m => ({ headers: [`Authorization: Bearer: ${await m.issuer.sign()}`] })),
  placed('as BearerToken', [401], async m => ({ headers: [`Authorization: BearerToken ${await m.issuer.sign()}`] })),
  placed('after a tab', [401], async m => ({ headers: [`Authorization: Bearer\t${await m.issuer.sign()}`] })),
  placed('after two spaces', [400], async m => ({ headers: [`Authorization: Bearer  ${await m.issuer.sign()}`] })),
  placed('Bearer twice', [400], async m => ({ headers: [`Authorization: Bearer Bearer ${await m.issuer.sign()}`] })),
  placed('two tokens', [400], async m => ({
    headers: [`Authorization: Bearer ${await m.issuer.sign()} ${await m.issuer.sign()}`],
  })),
  placed('two credentials in one header', [400], async m => ({
    headers: [`Authorization: Bearer ${await m.issuer.sign()}, Basic YTpi`],
  })),
  placed('two credentials without a space', [400], async m => ({
    headers: [`Authorization: Bearer ${await m.issuer.sign()},Bearer`],
  })),
  placed('the header twice, good ones', [400], async m => {
    const line = `Authorization: Bearer ${await m.issuer.sign()}`;
    return { headers: [line, line] };
  }),
  placed('the header twice, the second good', [400], async m => ({
    headers: ['Authorization: Bearer x', `authorization: Bearer ${await m.issuer.sign()}`],
  })),
  placed('the header twice, the first good', [400], async m => ({
    headers: [`Authorization: Bearer ${await m.issuer.sign()}`, 'AUTHORIZATION: Basic YTpi'],
  })),
  placed('a folded header', [400], async m => ({ headers: ['Authorization: Bearer', ` ${await m.issuer.sign()}`] })),
  placed('a space before the colon', [400], async m => ({
    headers: [`Authorization : Bearer ${await m.issuer.sign()}`],
  })),
  placed('NUL behind', [400], async m => ({ headers: [`Authorization: Bearer ${await m.issuer.sign()}\0`] })),
  placed('NUL before', [400], async m => ({ headers: [`Authorization: Bearer \0${await m.issuer.sign()}`] })),
  ...['X-Authorization', 'Proxy-Authorization', 'X-Forwarded-Authorization', 'X-Access-Token', 'X-API-Key', 'DPoP'].map(
    name => placed(`in ${name}`, [401], async m => ({ headers: [`${name}: Bearer ${await m.issuer.sign()}`] })),
  ),
  ...['Authorization', 'access_token', 'token', '__Host-token'].map(name =>
    placed(`in the cookie ${name}`, [401], async m => ({ headers: [`Cookie: ${name}=${await m.issuer.sign()}`] })),
  ),
  ...[
    'access_token',
    'ACCESS_TOKEN',
    'Access-Token',
    'access%5Ftoken',
    '%61ccess_token',
    'access%255ftoken',
    'access_token[]',
    'access_token[0]',
    'access_token[x]',
    'a=1&access_token',
    'a=1;access_token',
    'a?access_token',
    '&access_token',
    '+access_token',
    'access_token%00',
  ].map(name => placed(`in the query as ${name}`, [400], async m => ({ query: `?${name}=${await m.issuer.sign()}` }))),
  placed('in the header and the query', [400], async m => ({
    headers: [`Authorization: Bearer ${await m.issuer.sign()}`],
    query: `?access_token=${await m.issuer.sign()}`,
  })),
  placed('in a form', [401], async m => ({ form: `access_token=${await m.issuer.sign()}` })),
  placed('in the query as id_token', [401], async m => ({ query: `?id_token=${await m.issuer.sign()}` })),
  placed('an ingress key as x-api-key', [401], () => ({ headers: ['x-api-key: sk_0123456789abcdefghjkmnpq'] })),
  placed('larger than all headers may be', [431], () => ({
    headers: [`Authorization: Bearer ${'a'.repeat(40_000)}.e30.e30`],
  })),
  // The connection may be reset before the response is read because the server does not read the whole request.
  placed('1 MiB', [431, 0], () => ({ headers: [`Authorization: Bearer ${'a'.repeat(1_048_576)}.e30.e30`] })),
  placed('a good one among 40 KB of headers', [431], async m => ({
    headers: [`Authorization: Bearer ${await m.issuer.sign()}`, `X-Other: ${'a'.repeat(40_000)}`],
  })),
];
