import { CompactEncrypt, type JWK } from 'jose';
import { type BadToken, placed, type TokenMaterial } from './bad-token.ts';
import { encodePart, macParts, publicJwk, publicPem, signParts } from './compact-token.ts';
import { AUDIENCE, goodClaims, type TestIssuer } from './issuer.ts';
import { MISPLACED_TOKENS } from './misplaced-tokens.ts';

type Members = Readonly<Record<string, unknown>>;

/** Returns a token in the correct place that results in 401. */
function token(name: string, make: (material: TokenMaterial) => Promise<string> | string): BadToken {
  return placed(name, [401], async material => ({ headers: [`Authorization: Bearer ${await make(material)}`] }));
}

/** Returns a token that is signed with the issuer's own key, so only these claims or header members can be wrong. */
const claims = (name: string, changed: (material: TokenMaterial) => Members): BadToken =>
  token(name, material => material.issuer.sign(changed(material)));
const header = (name: string, changed: (material: TokenMaterial) => Members): BadToken =>
  token(name, ({ issuer, attacker }) =>
    signParts(issuer.key(), { ...goodHeader(issuer), ...changed({ issuer, attacker }) }, goodClaims(issuer.url)),
  );
/** The same claims as hand-written text. */
const claimsText = (name: string, change: (text: string) => string): BadToken =>
  token(name, ({ issuer }) =>
    signParts(issuer.key(), goodHeader(issuer), change(JSON.stringify(goodClaims(issuer.url)))),
  );
/** Returns a token that is signed with the key of an attacker that claims to be the issuer. */
const forged = (name: string, changed: (material: TokenMaterial) => Members): BadToken =>
  token(name, ({ issuer, attacker }) =>
    signParts(
      attacker.key(),
      { alg: 'RS256', kid: attacker.key().kid, ...changed({ issuer, attacker }) },
      goodClaims(issuer.url),
    ),
  );
const altered = (name: string, change: (token: string) => string): BadToken =>
  token(name, async ({ issuer }) => change(await issuer.sign()));

const goodHeader = (issuer: TestIssuer): Members => ({ alg: 'RS256', kid: issuer.key().kid, typ: 'JWT' });
const now = () => Math.floor(Date.now() / 1_000);
const unsigned = (alg: unknown) => (material: TokenMaterial) =>
  `${encodePart({ ...goodHeader(material.issuer), alg })}.${encodePart(goodClaims(material.issuer.url))}.`;
const mac = (secret: (key: JWK) => string | Buffer) => (material: TokenMaterial) =>
  macParts(
    secret(material.issuer.key()),
    { ...goodHeader(material.issuer), alg: 'HS256' },
    goodClaims(material.issuer.url),
  );
const withPart = (i: number, change: (part: string) => string) => (text: string) =>
  text
    .split('.')
    .map((part, at) => (at === i ? change(part) : part))
    .join('.');
/** Two representations only decode to the same bytes if unused bits differ. */
const respell = (part: string) => {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  return part.slice(0, -1) + (alphabet[alphabet.indexOf(part.at(-1) as string) ^ 1] as string);
};

const ALGORITHMS: readonly BadToken[] = [
  ...['none', 'None', 'NONE', 'nOnE', ' none', 'none\0', '', null, 0, ['RS256'], undefined].map(alg =>
    token(`unsigned, alg ${JSON.stringify(alg)}`, unsigned(alg)),
  ),
  token('unsigned, alg RS256', unsigned('RS256')),
  token('HS256 with the public key in PEM as the secret', mac(publicPem)),
  token(
    'HS256 with the public key in PEM, trimmed',
    mac(key => publicPem(key).trim()),
  ),
  token(
    'HS256 with the public key as JWK',
    mac(key => JSON.stringify(publicJwk(key))),
  ),
  token(
    'HS256 with the modulus',
    mac(key => Buffer.from(key.n as string, 'base64url')),
  ),
  token(
    'HS256 with an empty secret',
    mac(() => ''),
  ),
  token('RS512 by the right key, not configured', ({ issuer }) =>
    signParts(issuer.key(), { ...goodHeader(issuer), alg: 'RS512' }, goodClaims(issuer.url), 'sha512'),
  ),
  token('signed as SHA-512, declared as RS256', ({ issuer }) =>
    signParts(issuer.key(), goodHeader(issuer), goodClaims(issuer.url), 'sha512'),
  ),
  header('RS256 declared as ES256', () => ({ alg: 'ES256' })),
  header('RS256 declared as PS256', () => ({ alg: 'PS256' })),
  header('RS256 in lower case', () => ({ alg: 'rs256' })),
  header('RS256 declared as EdDSA', () => ({ alg: 'EdDSA' })),
];

const KEYS: readonly BadToken[] = [
  header('unknown kid', () => ({ kid: 'nobody' })),
  header('no kid', () => ({ kid: undefined })),
  header('empty kid', () => ({ kid: '' })),
  header('kid a number', () => ({ kid: 1 })),
  header('kid an array with the right one', ({ issuer }) => ({ kid: [issuer.key().kid] })),
  header('kid a path', () => ({ kid: '../../../../dev/null' })),
  header('kid SQL', () => ({ kid: "' UNION SELECT 'x" })),
  header('kid __proto__', () => ({ kid: '__proto__' })),
  forged("kid the address of the attacker's keys", ({ attacker }) => ({ kid: attacker.keysUrl })),
  forged("the attacker's key under the right kid", ({ issuer }) => ({ kid: issuer.key().kid })),
  forged("the attacker's key and kid", () => ({})),
  forged("jku of the attacker's own real key set", ({ attacker }) => ({ jku: attacker.keysUrl })),
  forged('jku under the right kid', ({ issuer, attacker }) => ({
    jku: attacker.keysUrl,
    kid: issuer.key().kid,
  })),
  forged('x5u of the attacker', ({ attacker }) => ({ x5u: attacker.keysUrl })),
  forged("the attacker's public key as jwk", ({ attacker }) => ({ jwk: publicJwk(attacker.key()) })),
  forged('jwk under the right kid', ({ issuer, attacker }) => ({
    jwk: publicJwk(attacker.key()),
    kid: issuer.key().kid,
  })),
  forged('x5c of the attacker', () => ({ x5c: ['MIIBszCCARygAwIBAgIBADANBgkqhkiG9w0BAQsFADAA'] })),
];

const HEADERS: readonly BadToken[] = [
  header('unknown crit', () => ({ crit: ['exp2'], exp2: 1 })),
  header('crit b64', () => ({ crit: ['b64'], b64: true })),
  header('crit b64 false', () => ({ crit: ['b64'], b64: false })),
  header('crit empty', () => ({ crit: [] })),
  header('crit no array', () => ({ crit: 'exp' })),
  header('a logout token', () => ({ typ: 'logout+jwt' })),
  header('a proof of possession', () => ({ typ: 'dpop+jwt' })),
  header('typ no text', () => ({ typ: 1 })),
];

const ISSUERS: readonly BadToken[] = [
  claims('iss missing', () => ({ iss: undefined })),
  claims('iss another', () => ({ iss: 'https://login.example.com' })),
  claims('iss with a slash behind', ({ issuer }) => ({ iss: `${issuer.url}/` })),
  claims('iss in upper case', ({ issuer }) => ({ iss: issuer.url.toUpperCase() })),
  claims('iss with another host for the same address', ({ issuer }) => ({ iss: `http://127.0.0.1:${issuer.port}` })),
  claims('iss https', ({ issuer }) => ({ iss: issuer.url.replace('http:', 'https:') })),
  claims('iss without port', () => ({ iss: 'http://localhost' })),
  claims('iss with a user', ({ issuer }) => ({ iss: issuer.url.replace('//', '//ada@') })),
  claims('iss as the user of another', ({ issuer }) => ({ iss: `${issuer.url}@evil.example` })),
  claims('iss with a query', ({ issuer }) => ({ iss: `${issuer.url}?` })),
  claims('iss with a fragment', ({ issuer }) => ({ iss: `${issuer.url}#` })),
  claims('iss with a path', ({ issuer }) => ({ iss: `${issuer.url}/realms/x` })),
  claims('iss with a space', ({ issuer }) => ({ iss: `${issuer.url} ` })),
  claims('iss an array with the right one', ({ issuer }) => ({ iss: [issuer.url] })),
  claims('iss an object', ({ issuer }) => ({ iss: { toString: issuer.url } })),
  claims('iss __proto__', () => ({ iss: '__proto__' })),
  token('everything of the attacker', ({ attacker }) => attacker.sign()),
];

const AUDIENCES: readonly BadToken[] = [
  claims('aud missing', () => ({ aud: undefined })),
  claims('aud another', () => ({ aud: 'other' })),
  claims('aud with a slash behind', () => ({ aud: `${AUDIENCE}/` })),
  claims('aud a prefix', () => ({ aud: AUDIENCE.slice(0, -1) })),
  claims('aud in upper case', () => ({ aud: AUDIENCE.toUpperCase() })),
  claims('aud empty', () => ({ aud: '' })),
  claims('aud an empty array', () => ({ aud: [] })),
  claims('aud an array of others', () => ({ aud: ['a', 'b'] })),
  claims('aud an array in an array', () => ({ aud: [[AUDIENCE]] })),
  claims('aud an array with a number', () => ({ aud: [AUDIENCE, 1] })),
  claims('aud several in one text', () => ({ aud: `${AUDIENCE} other` })),
  claims('aud an object', () => ({ aud: { [AUDIENCE]: true } })),
  claims('aud true', () => ({ aud: true })),
];

const TIMES: readonly BadToken[] = [
  claims('expired', () => ({ exp: now() - 1 })),
  claims('expired long ago', () => ({ exp: 1 })),
  claims('exp missing', () => ({ exp: undefined })),
  claims('exp null', () => ({ exp: null })),
  claims('exp a text', () => ({ exp: `${now() + 3_600}` })),
  claims('exp an array', () => ({ exp: [now() + 3_600] })),
  claims('exp negative', () => ({ exp: -1 })),
  claimsText('exp beyond all numbers', text => text.replace(/"exp":\d+/, '"exp":1e999')),
  claims('nbf in the future', () => ({ nbf: now() + 3_600 })),
  claims('nbf a text', () => ({ nbf: '0' })),
  claims('iat in the future', () => ({ iat: now() + 3_600 })),
  claims('iat a text', () => ({ iat: `${now()}` })),
];

const SUBJECTS: readonly BadToken[] = [
  claims('sub missing', () => ({ sub: undefined })),
  claims('sub empty', () => ({ sub: '' })),
  claims('sub null', () => ({ sub: null })),
  claims('sub a number', () => ({ sub: 1 })),
  claims('sub an array', () => ({ sub: ['ada'] })),
  claims('sub an object', () => ({ sub: { id: 'ada' } })),
  claims('sub with NUL', () => ({ sub: 'ada\0' })),
  claimsText('sub with half a surrogate pair', text => text.replace('"ada"', String.raw`"\ud800"`)),
  claims('client_id a number', () => ({ client_id: 1 })),
];

const FORMS: readonly BadToken[] = [
  altered('signature missing', text => text.slice(0, text.lastIndexOf('.'))),
  altered('signature empty', text => text.slice(0, text.lastIndexOf('.') + 1)),
  altered(
    'signature altered',
    withPart(2, part => (part[0] === 'A' ? 'B' : 'A') + part.slice(1)),
  ),
  altered(
    'signature truncated',
    withPart(2, part => part.slice(0, -4)),
  ),
  altered(
    'signature of zeros',
    withPart(2, part => 'A'.repeat(part.length)),
  ),
  altered('signature in another spelling', withPart(2, respell)),
  altered(
    'signature with padding',
    withPart(2, part => `${part}==`),
  ),
  altered(
    'signature with a line behind',
    withPart(2, part => `${part}%0a`),
  ),
  altered(
    'claims altered',
    withPart(1, part =>
      encodePart({ ...(JSON.parse(Buffer.from(part, 'base64url').toString()) as object), sub: 'root' }),
    ),
  ),
  altered(
    'header with padding',
    withPart(0, part => `${part}=`),
  ),
  altered(
    'header empty',
    withPart(0, () => ''),
  ),
  altered(
    'claims empty',
    withPart(1, () => ''),
  ),
  altered('truncated', text => text.slice(0, 40)),
  altered('one dot', text => text.replace('.', '')),
  altered('four dots', text => `${text}.e30.e30`),
  altered('a dot behind', text => `${text}.`),
  altered('a dot before', text => `.${text}`),
  altered('in quotes', text => `"${text}"`),
  altered('in base64', text => Buffer.from(text).toString('base64')),
  token('claims an array', ({ issuer }) => signParts(issuer.key(), goodHeader(issuer), [goodClaims(issuer.url)])),
  token('claims null', ({ issuer }) => signParts(issuer.key(), goodHeader(issuer), 'null')),
  token('claims a text', ({ issuer }) => signParts(issuer.key(), goodHeader(issuer), '"ada"')),
  token('claims no JSON', ({ issuer }) => signParts(issuer.key(), goodHeader(issuer), '{')),
  claimsText('claims with a byte order mark', text => `\ufeff${text}`),
  token('claims not UTF-8', ({ issuer }) =>
    signParts(
      issuer.key(),
      goodHeader(issuer),
      Buffer.from(JSON.stringify({ ...goodClaims(issuer.url), sub: 'ad\xe4' }), 'latin1'),
    ),
  ),
  token('header an array', ({ issuer }) => signParts(issuer.key(), [goodHeader(issuer)], goodClaims(issuer.url))),
  token('header not UTF-8', ({ issuer }) =>
    signParts(
      issuer.key(),
      Buffer.from(JSON.stringify({ ...goodHeader(issuer), x: '\xff' }), 'latin1'),
      goodClaims(issuer.url),
    ),
  ),
  token('a token in a token', async ({ issuer }) =>
    signParts(issuer.key(), { ...goodHeader(issuer), cty: 'JWT' }, await issuer.sign()),
  ),
  token('encrypted (JWE) with the public key', ({ issuer }) =>
    new CompactEncrypt(Buffer.from(JSON.stringify(goodClaims(issuer.url))))
      .setProtectedHeader({ alg: 'RSA-OAEP-256', enc: 'A256GCM' })
      .encrypt(publicJwk(issuer.key())),
  ),
  token('no token', () => ''),
  token('an ingress key', () => 'sk_0123456789abcdefghjkmnpqrstvwxyz'),
  token('two dots', () => '..'),
  token('empty objects', () => 'e30.e30.e30'),
  token('null', () => 'null'),
  token('undefined', () => 'undefined'),
  token('Latin-1 letters', () => '\xe4.\xf6.\xfc'),
];

/**
 * Requests without a valid token in the correct place. None of them may reach a guarded route. The response has one of
 * the statuses, and is a problem document. 401 includes WWW-Authenticate.
 */
export const BAD_TOKENS: readonly BadToken[] = [
  ...ALGORITHMS,
  ...KEYS,
  ...HEADERS,
  ...ISSUERS,
  ...AUDIENCES,
  ...TIMES,
  ...SUBJECTS,
  ...FORMS,
  ...MISPLACED_TOKENS,
];
