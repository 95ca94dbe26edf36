import { createHmac } from 'node:crypto';
import type { Choices } from '../random.ts';
import { encodePart, publicJwk, publicPem, signParts } from './compact-token.ts';
import { AUDIENCE, goodClaims, type TestIssuer } from './issuer.ts';

/** Creates a token that must be refused from parts of valid tokens. */
export type Forgery = (random: Choices) => string | Promise<string>;

export interface ForgeryMaterial {
  /** A configured issuer, RS256. */
  readonly issuer: TestIssuer;
  /** A different issuer, which is not configured. */
  readonly attacker: TestIssuer;
  /** Valid tokens of the issuer (at least two). */
  readonly good: readonly string[];
}

type Members = Readonly<Record<string, unknown>>;

const partsOf = (token: string) => token.split('.') as [string, string, string];
const ODD = [null, true, 0, -1, 1e308, '', ' ', 'x', [], {}, ['x'], { a: 1 }, '\u0000', '\u00e9', 'a'.repeat(300)];
const NAMES = ['iss', 'aud', 'sub', 'exp', 'nbf', 'iat', 'cnf'];
/** Header members which a token could use to specify its own key. */
const KEY_MEMBERS = ['jku', 'x5u', 'jwk', 'x5c', 'x5t', 'x5t#S256'];

/** Flips a bit of a part. Parts must be canonical, so the decoded value always changes. */
function flipBit(random: Choices, part: string): string {
  const bytes = Buffer.from(part, 'base64url');
  const at = random.below(bytes.length);
  bytes[at] = (bytes[at] as number) ^ (1 << random.below(8));
  return bytes.toString('base64url');
}

/**
 * Adds the modulus to an RSA signature, which results in the same number modulo n. Undefined if the result is too
 * large.
 */
function addModulus(signature: string, modulus: string): string | undefined {
  const number = (text: string) => BigInt(`0x${Buffer.from(text, 'base64url').toString('hex')}`);
  const hex = (number(signature) + number(modulus)).toString(16);
  const even = hex.length % 2 === 0 ? hex : `0${hex}`;
  return even.length > 512 ? undefined : Buffer.from(even.padStart(512, '0'), 'hex').toString('base64url');
}

/** Returns different methods for forging a token. */
export function createForgeries({ issuer, attacker, good }: ForgeryMaterial): Readonly<Record<string, Forgery>> {
  const header = (members: Members = {}) => ({ alg: 'RS256', kid: issuer.key().kid, typ: 'JWT', ...members });
  const twoOf = (random: Choices): [string, string] => {
    const [one, other] = [random.below(good.length), random.below(good.length - 1)];
    return [good[one] as string, good[other < one ? other : other + 1] as string];
  };
  return { ...ofSignatures(), ...ofClaims(), ...ofHeaders(), ...ofForms() };

  function ofSignatures(): Record<string, Forgery> {
    return {
      'a bit of the token is flipped': random => {
        const parts = partsOf(random.pick(good));
        const at = random.below(3);
        parts[at] = flipBit(random, parts[at] as string);
        return parts.join('.');
      },
      'the parts are those of two tokens': random => {
        const [one, other] = twoOf(random);
        const [head, claims] = partsOf(one);
        return [head, claims, partsOf(other)[2]].join('.');
      },
      'the token is signed with another key': random => {
        const members = random.pick([
          {},
          { kid: issuer.key().kid },
          { jwk: attacker.key() },
          { jku: attacker.keysUrl },
        ]);
        return attacker.sign({ ...goodClaims(issuer.url), sub: `u${random.below(1_000)}` }, members);
      },
      'the public key is used as a secret': random => {
        const key = issuer.key();
        const secret = random.pick([publicPem(key), publicPem(key).trim(), JSON.stringify(publicJwk(key)), '']);
        const alg = random.pick(['HS256', 'HS384', 'HS512', 'RS256']);
        const signed = `${encodePart(header({ alg }))}.${encodePart(goodClaims(issuer.url))}`;
        const hash = alg === 'RS256' ? 'sha256' : `sha${alg.slice(2)}`;
        return `${signed}.${createHmac(hash, secret).update(signed).digest('base64url')}`;
      },
      'there is no signature': random => {
        const alg = random.pick(['none', 'None', 'NONE', 'nOnE', '', 'RS256', 'RS512']);
        const signed = `${encodePart(header({ alg }))}.${encodePart(goodClaims(issuer.url))}`;
        return signed + random.pick(['', '.', '.AA', '..', `.${partsOf(random.pick(good))[2].slice(0, 342 - 4)}`]);
      },
      'the signature is spelled in another way': random => {
        const [head, claims, signature] = partsOf(random.pick(good));
        const bytes = Buffer.from(signature, 'base64url');
        const spellings = [
          signature.slice(0, -1 - random.below(signature.length - 1)),
          Buffer.concat([Buffer.alloc(1 + random.below(4)), bytes]).toString('base64url'),
          Buffer.concat([bytes, Buffer.alloc(1 + random.below(4))]).toString('base64url'),
          bytes.toString('base64'),
          addModulus(signature, issuer.key().n as string) ?? `${signature}A`,
          Buffer.from(bytes).reverse().toString('base64url'),
          'A'.repeat(signature.length),
        ];
        return [head, claims, random.pick(spellings.filter(each => each !== signature))].join('.');
      },
    };
  }

  function ofClaims(): Record<string, Forgery> {
    return {
      'a claim is changed without a new signature': random => {
        const [head, claims, signature] = partsOf(random.pick(good));
        const changed = JSON.parse(Buffer.from(claims, 'base64url').toString()) as Record<string, unknown>;
        changed[random.pick(['sub', 'azp', 'scope', 'groups'])] = `forged ${random.below(1_000)}`;
        return [head, encodePart(changed), signature].join('.');
      },
      'the issuer signs a claim of the wrong form': random => {
        const name = random.pick(NAMES);
        const odd = random.pick(
          ODD.filter(value => !(name === 'sub' && typeof value === 'string' && /^[^\0]+$/.test(value))),
        );
        // A time in the past is valid for nbf, but too early for iat. A time in the distant future is valid for exp.
        const isFine = (name === 'nbf' && (odd === 0 || odd === -1)) || (name === 'exp' && odd === 1e308);
        return issuer.sign({ [name]: isFine ? 'x' : odd });
      },
      'the issuer signs a token for others': random =>
        issuer.sign(
          random.pick([{ aud: 'other' }, { aud: ['other', 'another'] }, { iss: attacker.url }, { aud: undefined }]),
        ),
      'the time is over, or has not come': random => {
        const now = Math.floor(Date.now() / 1_000);
        const by = 60 + random.below(1e6);
        const old = { iat: now - 3_600 - by };
        return issuer.sign(
          random.pick([{ exp: now - by }, { nbf: now + by }, { iat: now + by }, { exp: undefined }, old]),
        );
      },
      'the token is bound to a key': random =>
        issuer.sign({ cnf: random.pick([{ jkt: 'x' }, { 'x5t#S256': 'x' }, { jwk: attacker.key() }, {}, 'x']) }),
      'a member is there twice, and the last one is wrong': random => {
        const text = (members: object, last: string) => `${JSON.stringify(members).slice(0, -1)},${last}}`;
        if (random.below(3) === 0) {
          const last = random.pick([
            '"alg":"none"',
            '"alg":"HS256"',
            '"kid":"x"',
            '"typ":"logout+jwt"',
            '"crit":["x"]',
          ]);
          return signParts(issuer.key(), text(header(), last), goodClaims(issuer.url));
        }
        const last = random.pick([
          '"aud":"other"',
          '"exp":1',
          '"sub":""',
          `"iss":"${attacker.url}"`,
          '"nbf":9e9',
          '"iat":9e9',
        ]);
        return signParts(issuer.key(), header(), text(goodClaims(issuer.url), last));
      },
      'a text looks like the right one': random => {
        const wide = (text: string) =>
          text.replace(/[a-z]/, letter => String.fromCodePoint(0xff21 + letter.charCodeAt(0) - 65));
        const marked = (text: string) =>
          text + random.pick(['\u200b', '\u00ad', '\ufeff', '\u0301', '\u202e', '\u0000']);
        const change = random.pick([wide, marked]);
        if (random.below(2) === 0) return issuer.sign({ aud: change(AUDIENCE) });
        return issuer.sign({ iss: change(issuer.url) });
      },
    };
  }

  function ofHeaders(): Record<string, Forgery> {
    return {
      'the header asks for something else': random =>
        issuer.sign({}, random.pick([{ typ: 'dpop+jwt' }, { typ: 'logout+jwt' }, { kid: undefined }, { kid: 'x' }])),
      'the header has extensions that must be understood': random => {
        const crit = random.pick([['exp'], ['b64'], ['x'], [], 'b64', [1], null, ['__proto__']]);
        return signParts(issuer.key(), header({ crit, b64: random.below(2) === 0, x: 1 }), goodClaims(issuer.url));
      },
      'the header brings a key': random => {
        const values = [attacker.keysUrl, publicJwk(attacker.key()), ['MIIB'], 'x', 'file:///etc/passwd'];
        const members = {
          [random.pick(KEY_MEMBERS)]: random.pick(values),
          [random.pick(KEY_MEMBERS)]: attacker.keysUrl,
        };
        const kid = random.pick([issuer.key().kid, attacker.key().kid, attacker.keysUrl, '../x', '']);
        return signParts(attacker.key(), header({ ...members, kid }), goodClaims(issuer.url));
      },
      'the algorithm is another one': random => {
        const alg = random.pick([
          'RS384',
          'RS512',
          'PS256',
          'ES256',
          'EdDSA',
          'rs256',
          'R\u0405256',
          'RS256 ',
          ['RS256'],
          1,
        ]);
        return signParts(issuer.key(), header({ alg }), goodClaims(issuer.url));
      },
    };
  }

  function ofForms(): Record<string, Forgery> {
    return {
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
      'the token is huge': random => {
        const claims = { ...goodClaims(issuer.url), scope: 'waas:write '.repeat(1 + random.below(1_500)) };
        return signParts(attacker.key(), header(), claims);
      },
      'the claims are nested deeply': random => {
        const depth = 1 + random.below(5_000);
        const [open, close] = random.pick([
          ['[', ']'],
          ['{"a":', '}'],
        ] as const);
        const nested = open.repeat(depth) + random.pick(['1', '', '"sub"']) + close.repeat(depth);
        const text = `${JSON.stringify(goodClaims(issuer.url)).slice(0, -1)},"cnf":${nested}}`;
        return signParts(issuer.key(), header(), text);
      },
      'a part is of another sort': random => {
        const odd = random.pick([
          'null',
          '[]',
          '"x"',
          '1',
          '',
          '{',
          '\ufeff{}',
          '{"a":1}{"b":2}',
          Buffer.from([0xff, 0xfe]),
        ]);
        return random.below(2) === 0
          ? signParts(issuer.key(), odd, goodClaims(issuer.url))
          : signParts(issuer.key(), header(), odd);
      },
    };
  }
}
