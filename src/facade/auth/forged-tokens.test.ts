import { createHmac, createPublicKey } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGuardedServer } from '../../../test/support/facade/guarded-server.ts';
import { goodClaims, startIssuer, type TestIssuer } from '../../../test/support/facade/issuer.ts';
import { exchange } from '../../../test/support/facade/raw-exchange.ts';

const SEED = 20_261_125;
const TOKENS = 3_000;

let issuer: TestIssuer;
let attacker: TestIssuer;
let server: Awaited<ReturnType<typeof startGuardedServer>>;
let good: readonly string[];
beforeAll(async () => {
  [issuer, attacker] = await Promise.all([startIssuer(), startIssuer()]);
  server = await startGuardedServer({ issuers: [issuer.url], maxAgeSeconds: 600 });
  good = await Promise.all(Array.from({ length: 20 }, (_, i) => issuer.sign({ sub: `user-${i}`, jti: `${i}` })));
});
afterAll(async () => {
  await server.close();
  await Promise.all([issuer.stop(), attacker.stop()]);
});

/** Mulberry32, a generator of numbers from 0 to 1 that is the same for the same seed. */
function createRandom(seed: number) {
  let state = seed;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (count: number) => Math.floor(next() * count);
  return { below, pick: <T>(items: readonly T[]): T => items[below(items.length)] as T };
}
type Random = ReturnType<typeof createRandom>;

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const partsOf = (token: string) => token.split('.') as [string, string, string];
const ODD = [null, true, 0, -1, 1e308, '', ' ', 'x', [], {}, ['x'], { a: 1 }, '\u0000', '\u00e9', 'a'.repeat(300)];
const NAMES = ['iss', 'aud', 'sub', 'exp', 'nbf', 'iat', 'cnf', 'scope', 'azp', 'jti', '__proto__'];
/** Values of a claim that a good token can have as well. */
const HARMLESS = ['scope', 'azp', 'jti', '__proto__'];

/** Flips a bit of a part. What is decoded always changes, since parts must be canonical. */
function flipBit(random: Random, part: string): string {
  const bytes = Buffer.from(part, 'base64url');
  const at = random.below(bytes.length);
  bytes[at] = (bytes[at] as number) ^ (1 << random.below(8));
  return bytes.toString('base64url');
}

/** Ways to forge a token. Each returns a token that must be refused. */
const FORGERIES: Readonly<Record<string, (random: Random) => string | Promise<string>>> = {
  'a bit of the token is flipped': random => {
    const parts = partsOf(random.pick(good));
    const at = random.below(3);
    parts[at] = flipBit(random, parts[at] as string);
    return parts.join('.');
  },
  'the parts are those of two tokens': random => {
    const [one, other] = [random.below(good.length), random.below(good.length - 1)];
    const [header, claims] = partsOf(good[one] as string);
    return [header, claims, partsOf(good[other < one ? other : other + 1] as string)[2]].join('.');
  },
  'a claim is changed without a new signature': random => {
    const [header, claims, signature] = partsOf(random.pick(good));
    const changed = JSON.parse(Buffer.from(claims, 'base64url').toString()) as Record<string, unknown>;
    changed[random.pick(['sub', 'azp', 'scope', 'groups'])] = `forged ${random.below(1_000)}`;
    return [header, encode(changed), signature].join('.');
  },
  'the token is signed by somebody else': async random => {
    const header = random.pick([{}, { kid: issuer.key().kid }, { jwk: attacker.key() }, { jku: attacker.keysUrl }]);
    return attacker.sign({ ...goodClaims(issuer.url), sub: `u${random.below(1_000)}` }, header);
  },
  'the public key is used as a secret': random => {
    const pem = createPublicKey({ key: issuer.key() as never, format: 'jwk' }).export({ type: 'spki', format: 'pem' });
    const alg = random.pick(['HS256', 'HS384', 'HS512', 'RS256']);
    const signed = `${encode({ alg, kid: issuer.key().kid, typ: 'JWT' })}.${encode(goodClaims(issuer.url))}`;
    const hash = alg === 'RS256' ? 'sha256' : `sha${alg.slice(2)}`;
    return `${signed}.${createHmac(hash, pem).update(signed).digest('base64url')}`;
  },
  'there is no signature': random => {
    const alg = random.pick(['none', 'None', 'NONE', 'nOnE', '', 'RS256', 'RS512']);
    const signed = `${encode({ alg, kid: issuer.key().kid })}.${encode(goodClaims(issuer.url))}`;
    return signed + random.pick(['', '.', '.AA', '..', `.${partsOf(random.pick(good))[2].slice(0, 342 - 4)}`]);
  },
  'the issuer signs a claim of the wrong form': async random => {
    const name = random.pick(NAMES.filter(each => !HARMLESS.includes(each)));
    const odd = random.pick(
      ODD.filter(value => !(name === 'sub' && typeof value === 'string' && /^[^\0]+$/.test(value))),
    );
    // A time in the past is fine for nbf, but too long ago for iat. One in the far future is fine for exp.
    const isFine = (name === 'nbf' && (odd === 0 || odd === -1)) || (name === 'exp' && odd === 1e308);
    return issuer.sign({ [name]: isFine ? 'x' : odd });
  },
  'the issuer signs a token for others': async random =>
    issuer.sign(
      random.pick([{ aud: 'other' }, { aud: ['other', 'another'] }, { iss: attacker.url }, { aud: undefined }]),
    ),
  'the time is over, or has not come': async random => {
    const now = Math.floor(Date.now() / 1_000);
    const by = 60 + random.below(1e6);
    const old = { iat: now - 600 - by };
    return issuer.sign(random.pick([{ exp: now - by }, { nbf: now + by }, { iat: now + by }, { exp: undefined }, old]));
  },
  'the token is bound to a key': async random =>
    issuer.sign({ cnf: random.pick([{ jkt: 'x' }, { 'x5t#S256': 'x' }, { jwk: attacker.key() }, {}, 'x']) }),
  'the header asks for something else': async random =>
    issuer.sign({}, random.pick([{ typ: 'dpop+jwt' }, { typ: 'logout+jwt' }, { kid: undefined }, { kid: 'x' }])),
  'the token is cut off': random => {
    const token = random.pick(good);
    return token.slice(0, 1 + random.below(token.length - 1));
  },
  'a character is added': random => {
    const token = random.pick(good);
    const at = random.below(token.length + 1);
    return token.slice(0, at) + random.pick([...'.=+/-_Aa0~%"\\{}']) + token.slice(at);
  },
  'the token is noise': random =>
    Array.from({ length: 1 + random.below(200) }, () => random.pick([...'.=+/-_ABCabc012'])).join(''),
};

test(`none of ${TOKENS} generated tokens is accepted (seed ${SEED})`, async () => {
  const random = createRandom(SEED);
  const names = Object.keys(FORGERIES);
  const failures: string[] = [];
  const reasons = new Map<string, number>();
  const tokens: { name: string; token: string }[] = [];
  for (let i = 0; i < TOKENS; i++) {
    const name = names[i % names.length] as string;
    tokens.push({ name, token: await (FORGERIES[name] as (random: Random) => Promise<string>)(random) });
  }
  const worker = async () => {
    for (let next = tokens.pop(); next !== undefined; next = tokens.pop()) {
      const head = ['GET /waas/x HTTP/1.1', 'Host: x', 'Connection: close', `Authorization: Bearer ${next.token}`];
      const { status, headers } = await exchange(server.port, `${head.join('\r\n')}\r\n\r\n`);
      const challenge = headers['www-authenticate'] ?? '';
      const reason = /error_description="([^"]+)"/.exec(challenge)?.[1] ?? 'none';
      reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
      const told = status === 401 && challenge.startsWith('Bearer realm="sluice", error="invalid_token"');
      if (!told) failures.push(`${next.name}: ${status} ${next.token}`);
    }
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  expect(failures).toEqual([]);
  expect(server.reached).toEqual([]);
  // The tokens are refused for many reasons, and not because all of them are malformed.
  expect(reasons.size).toBeGreaterThan(10);
}, 60_000);

test('the tokens that they are made of are accepted', async () => {
  for (const token of good) {
    const head = ['GET /waas/x HTTP/1.1', 'Host: x', 'Connection: close', `Authorization: Bearer ${token}`];
    expect(await exchange(server.port, `${head.join('\r\n')}\r\n\r\n`)).toMatchObject({ status: 200 });
  }
});
