import { generateKeyPairSync, type KeyPairKeyObjectResult, sign } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { encodePart, signParts } from '../../../test/support/facade/compact-token.ts';
import { type GuardOptions, startGuardedServer } from '../../../test/support/facade/guarded-server.ts';
import { goodClaims, startIssuer, type TestIssuer } from '../../../test/support/facade/issuer.ts';
import { exchange } from '../../../test/support/facade/raw-exchange.ts';
import { createLogger } from '../../telemetry/log.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const close of closers.splice(0)) await close();
});

async function issue(alg?: string): Promise<TestIssuer> {
  const issuer = await startIssuer(alg);
  closers.push(() => issuer.stop());
  return issuer;
}

/**
 * A guarded server, and a function that returns the status, the problem, and the headers of the response to a token.
 */
async function guard(options: GuardOptions) {
  const server = await startGuardedServer(options);
  closers.unshift(server.close);
  return async (token: string) => {
    const bytes = `GET /waas/x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`;
    const { status, headers, body } = await exchange(server.port, bytes);
    return { status, headers, ...(JSON.parse(body) as { code?: string; subject?: string }) };
  };
}

/** An HTTP server that responds to all requests with `listener`. */
async function listen(listener: Parameters<typeof createServer>[1]): Promise<{ url: string; server: Server }> {
  const server = createServer(listener ?? (() => {}));
  await new Promise<void>(resolve => {
    server.listen(0, '127.0.0.1', resolve);
  });
  closers.push(
    () => server.closeAllConnections(),
    () => server.close(),
  );
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}

test('the identity matches the token', async () => {
  const issuer = await issue();
  const ask = await guard({ issuers: [issuer.url] });
  const person = await ask(await issuer.sign({ sub: 'auth0|7', groups: ['ops', 'x'], azp: 'portal' }));
  expect(person).toMatchObject({ status: 200, subject: 'auth0|7', groups: ['ops', 'x'] });
  expect(person).not.toHaveProperty('client');
  expect(await ask(await issuer.sign({ sub: 'portal', azp: 'portal' }))).toMatchObject({ client: 'portal' });
});

test('a client is recognized by the configured claim', async () => {
  const issuer = await issue();
  const ask = await guard({ issuers: [issuer.url], clientClaims: [{ name: 'token_use', value: 'machine' }] });
  const token = await issuer.sign({ sub: '4711', azp: 'portal', token_use: 'machine' });
  expect(await ask(token)).toMatchObject({ status: 200, client: 'portal' });
});

test.each(['RS512', 'PS256', 'ES256', 'ES384', 'EdDSA'])(
  'tokens that are signed by %s, if it is configured',
  async alg => {
    const issuer = await issue(alg);
    const both = await guard({ issuers: [issuer.url], algorithms: ['RS256', alg] });
    expect(await both(await issuer.sign())).toMatchObject({ status: 200 });
    const one = await guard({ issuers: [issuer.url], algorithms: ['RS256'] });
    expect(await one(await issuer.sign())).toMatchObject({ status: 401, code: 'invalid_token' });
  },
);

test('refuses a path that Express skips, even with a valid token', async () => {
  const issuer = await issue();
  const rewrite = async (request: FastifyRequest) => {
    request.raw.url = '';
  };
  const ask = await guard({ issuers: [issuer.url], rewrite });
  expect(await ask(await issuer.sign())).toMatchObject({ status: 401, code: 'missing_token' });
});

describe('a signature that is known to be valid', () => {
  const HOUR_MS = 3_600_000;

  test('is not verified again within 30 s', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const clock = { nowMs: Date.now(), monotonicMs: 0 };
    const issuer = await issue();
    const ask = await guard({
      issuers: [issuer.url],
      nowMs: () => clock.nowMs,
      monotonicMs: () => clock.monotonicMs,
    });
    const token = await issuer.sign();
    expect(await ask(token)).toMatchObject({ status: 200 });
    // Only the library that verifies signatures uses this clock.
    vi.setSystemTime(clock.nowMs + 2 * HOUR_MS);
    clock.monotonicMs = 29_999;
    expect(await ask(token)).toMatchObject({ status: 200 });
    clock.monotonicMs = 30_000;
    expect(await ask(token)).toMatchObject({ status: 401 });
  });

  test('does not keep a token from expiring', async () => {
    const issuer = await issue();
    const token = await issuer.sign();
    // The clock starts later, so that the token is valid already.
    const clock = { nowMs: Date.now() };
    const ask = await guard({ issuers: [issuer.url], nowMs: () => clock.nowMs, monotonicMs: () => 0 });
    expect(await ask(token)).toMatchObject({ status: 200 });
    clock.nowMs += HOUR_MS + 1_000;
    expect(await ask(token)).toMatchObject({ status: 401, code: 'invalid_token' });
  });

  test('counts for nothing but the same bytes', async () => {
    const issuer = await issue();
    const ask = await guard({ issuers: [issuer.url] });
    const token = await issuer.sign({ sub: 'ada' });
    expect(await ask(token)).toMatchObject({ status: 200, subject: 'ada' });
    const [head = '', , signature = ''] = token.split('.');
    const [, claims = ''] = (await issuer.sign({ sub: 'eve' })).split('.');
    expect(await ask(`${head}.${claims}.${signature}`)).toMatchObject({ status: 401 });
  });
});

describe('several issuers', () => {
  test('each is taken, neither for the other', async () => {
    const [one, two] = [await issue(), await issue()];
    const ask = await guard({ issuers: [one.url, two.url] });
    expect(await ask(await one.sign({ sub: 'a' }))).toMatchObject({ status: 200, subject: 'a' });
    expect(await ask(await two.sign({ sub: 'b' }))).toMatchObject({ status: 200, subject: 'b' });
    expect(await ask(await one.sign({ iss: two.url }))).toMatchObject({ status: 401 });
  });

  test('an unavailable issuer does not affect the others', async () => {
    const [one, two] = [await issue(), await issue()];
    const ask = await guard({ issuers: [one.url, two.url] });
    const token = await one.sign();
    await one.stop();
    expect(await ask(token)).toMatchObject({ status: 503, code: 'issuer_unavailable' });
    expect(await ask(await two.sign())).toMatchObject({ status: 200 });
    await one.restart();
  });
});

describe('an issuer that cannot be asked', () => {
  test('returns 503 with Retry-After and no challenge, and recovers', async () => {
    const issuer = await issue();
    const ask = await guard({ issuers: [issuer.url], limits: { retryMs: 0 } });
    const token = await issuer.sign();
    await issuer.stop();
    const answer = await ask(token);
    expect(answer).toMatchObject({ status: 503, code: 'issuer_unavailable', headers: { 'retry-after': '5' } });
    expect(answer.headers).not.toHaveProperty('www-authenticate');
    // Tokens which can be rejected without a key are still rejected.
    expect(await ask('x')).toMatchObject({ status: 401 });
    await issuer.restart();
    expect(await ask(token)).toMatchObject({ status: 200 });
  });

  test('is not needed while its keys are known', async () => {
    const issuer = await issue();
    const ask = await guard({ issuers: [issuer.url] });
    const token = await issuer.sign();
    expect(await ask(token)).toMatchObject({ status: 200 });
    const unknown = await issuer.sign({}, { kid: 'nobody' });
    await issuer.stop();
    expect(await ask(token)).toMatchObject({ status: 200 });
    // It is not possible to determine whether this is the newest key.
    expect(await ask(unknown)).toMatchObject({ status: 503 });
    await issuer.restart();
  });

  const silent = () => {};
  const trickling: Parameters<typeof createServer>[1] = (_request, response) => {
    response.write('{');
    const more = setInterval(() => response.write(' '), 20);
    response.on('close', () => clearInterval(more));
  };
  test.each([
    ['takes connections and says nothing', silent],
    ['never ends', trickling],
  ])('because it %s: 503 within the deadline', async (_, listener) => {
    const { url } = await listen(listener);
    const ask = await guard({ issuers: [url], limits: { timeoutMs: 200 } });
    const key = (await issue()).key();
    const token = signParts(key, { alg: 'RS256', kid: 'k' }, goodClaims(url));
    const begun = performance.now();
    // All calls waiting in the meantime share the same request.
    const answers = await Promise.all([ask(token), ask(token), ask(token)]);
    expect(answers.map(({ status }) => status)).toEqual([503, 503, 503]);
    expect(performance.now() - begun).toBeLessThan(3_000);
  });

  test('is asked again soon, even if the clock of this machine has been set back', async () => {
    const clock = { nowMs: Date.now() + 3_600_000, monotonicMs: 0 };
    const issuer = await issue();
    const options = { nowMs: () => clock.nowMs, monotonicMs: () => clock.monotonicMs };
    const ask = await guard({ issuers: [issuer.url], clockToleranceSeconds: 7_200, ...options });
    const token = await issuer.sign();
    await issuer.stop();
    expect(await ask(token)).toMatchObject({ status: 503 });
    await issuer.restart();
    clock.nowMs -= 3_600_000;
    clock.monotonicMs += 1_000;
    expect(await ask(token)).toMatchObject({ status: 200 });
  });

  test('is logged once a minute, with its name and without the token', async () => {
    const lines: string[] = [];
    const log = createLogger({ level: 'silent' });
    log.warn = ((fields: object, message: string) => lines.push(JSON.stringify({ ...fields, message }))) as never;
    const issuer = await issue();
    const clock = { ms: 0 };
    const ask = await guard({ issuers: [issuer.url], log, monotonicMs: () => clock.ms });
    const token = await issuer.sign();
    await issuer.stop();
    for (let second = 0; second < 60; second++) {
      expect(await ask(token)).toMatchObject({ status: 503 });
      clock.ms += 1_000;
    }
    expect(lines).toHaveLength(1);
    await ask(token);
    expect(lines).toHaveLength(2);
    expect(lines[0]).toContain(issuer.url);
    expect(lines[0]).not.toContain(token.slice(-20));
    await issuer.restart();
  });
});

describe('rotation', () => {
  test('accepts a new key immediately, and the old one while it is published', async () => {
    const issuer = await issue();
    const ask = await guard({ issuers: [issuer.url] });
    const old = await issuer.sign();
    expect(await ask(old)).toMatchObject({ status: 200 });
    for (const kid of ['second', 'third']) {
      await issuer.rotate(kid);
      expect(await ask(await issuer.sign())).toMatchObject({ status: 200 });
    }
    expect(await ask(old)).toMatchObject({ status: 200 });
  });

  test('accepts a new key with the same name within the cool-down, and refuses the old one', async () => {
    const pairs = [1, 2].map(() => generateKeyPairSync('rsa', { modulusLength: 2_048 }));
    let current = pairs[0] as KeyPairKeyObjectResult;
    let keys = 0;
    const { url } = await listen((request, response) => {
      if (request.url === '/keys') keys++;
      const set = { keys: [{ ...current.publicKey.export({ format: 'jwk' }), kid: 'k' }] };
      response.end(JSON.stringify(request.url === '/keys' ? set : { issuer: url, jwks_uri: `${url}/keys` }));
    });
    const tokenOf = ({ privateKey }: KeyPairKeyObjectResult) => {
      const input = `${encodePart({ alg: 'RS256', kid: 'k' })}.${encodePart(goodClaims(url))}`;
      return `${input}.${sign('sha256', Buffer.from(input), privateKey).toString('base64url')}`;
    };
    const [old, next] = pairs.map(tokenOf) as [string, string];
    const clock = { ms: 0 };
    const ask = await guard({ issuers: [url], monotonicMs: () => clock.ms });
    expect(await ask(old)).toMatchObject({ status: 200 });
    current = pairs[1] as KeyPairKeyObjectResult;
    clock.ms += 5_000;
    const answers = await Promise.all([ask(next), ask(next), ask(next)]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    for (let n = 0; n < 20; n++) expect(await ask(old)).toMatchObject({ status: 401 });
    expect(keys).toBe(2);
  });

  test('an issuer that publishes no keys for a while is unavailable, and its known keys remain valid', async () => {
    const issuer = await issue();
    let isEmpty = true;
    const { keys } = (await (await fetch(issuer.keysUrl)).json()) as { keys: object[] };
    const { url } = await listen((request, response) => {
      const set = { keys: isEmpty ? [] : keys };
      response.end(JSON.stringify(request.url === '/keys' ? set : { issuer: url, jwks_uri: `${url}/keys` }));
    });
    const clock = { ms: 0 };
    const ask = await guard({ issuers: [url], monotonicMs: () => clock.ms });
    const token = await issuer.sign({ iss: url });
    expect(await ask(token)).toMatchObject({ status: 503, code: 'issuer_unavailable' });
    isEmpty = false;
    clock.ms += 1_000;
    expect(await ask(token)).toMatchObject({ status: 200 });
    isEmpty = true;
    clock.ms += 600_000;
    for (let n = 0; n < 3; n++) {
      expect(await ask(token)).toMatchObject({ status: 200 });
      clock.ms += 1_000;
    }
  });

  test('invented keys cost the issuer one look in a cool-down', async () => {
    const issuer = await issue();
    const [good, invented] = [await issuer.sign(), await issuer.sign({}, { kid: 'nobody' })];
    const clock = { ms: 0 };
    const ask = await guard({ issuers: [issuer.url], monotonicMs: () => clock.ms });
    expect(await ask(good)).toMatchObject({ status: 200 });
    const before = issuer.reads();
    for (let i = 0; i < 20; i++) expect(await ask(invented)).toMatchObject({ status: 401 });
    expect(issuer.reads() - before).toBe(2);
    clock.ms += 5_000;
    expect(await ask(invented)).toMatchObject({ status: 401 });
    expect(issuer.reads() - before).toBe(4);
  });
});

describe('keys of an issuer that are of no use', () => {
  const kid = 'k';
  const jwkOf = (pair: KeyPairKeyObjectResult) => ({ ...pair.publicKey.export({ format: 'jwk' }), kid });

  /** An issuer with a key, after `more` keys, and a token signed with this key, which may name another issuer. */
  async function issueWith(pair: KeyPairKeyObjectResult, alg: string, more: readonly object[] = [], iss?: string) {
    const keys = [{ kid: 'odd', kty: 'RSA' }, ...more, jwkOf(pair)];
    const { url } = await listen((request, response) => {
      const metadata = { issuer: url, jwks_uri: `${url}/keys` };
      response.end(JSON.stringify(request.url === '/keys' ? { keys } : metadata));
    });
    const input = `${encodePart({ alg, kid })}.${encodePart(goodClaims(iss ?? url))}`;
    const hash = pair.privateKey.asymmetricKeyType === 'rsa' ? 'sha256' : undefined;
    return { url, token: `${input}.${sign(hash, Buffer.from(input), pair.privateKey).toString('base64url')}` };
  }

  test('are published under the same name as the right one', async () => {
    const wanted = generateKeyPairSync('rsa', { modulusLength: 2_048 });
    const others = [
      { kty: 'RSA', kid: 'k', n: '', e: 'AQAB' },
      { ...jwkOf(wanted), use: 'enc' },
    ];
    const stranger = jwkOf(generateKeyPairSync('rsa', { modulusLength: 2_048 }));
    // Some issuers publish a key once for each algorithm, or use one name for keys of several types.
    const ofOtherAlgorithms = ['RS384', 'RS512', 'PS256', 'PS384', 'PS512'].map(alg => ({ ...jwkOf(wanted), alg }));
    const curves = ['P-256', 'P-384', 'P-521', 'secp256k1'].map(namedCurve =>
      generateKeyPairSync('ec', { namedCurve }),
    );
    const none = [[], [stranger], others, [jwkOf(wanted)], [stranger, ...others]];
    for (const more of [...none, ofOtherAlgorithms, [...curves.map(jwkOf), ...ofOtherAlgorithms]]) {
      const { url, token } = await issueWith(wanted, 'RS256', more);
      const ask = await guard({ issuers: [url] });
      expect(await ask(token), JSON.stringify(more)).toMatchObject({ status: 200 });
      const { token: forged } = await issueWith(generateKeyPairSync('rsa', { modulusLength: 2_048 }), 'RS256', [], url);
      expect(await ask(forged)).toMatchObject({ status: 401 });
    }
  });

  test.each([
    ['an RSA key of 1,024 bits', generateKeyPairSync('rsa', { modulusLength: 1_024 }), 'RS256', 401],
    ['a key of a curve that is not supported', generateKeyPairSync('ed448'), 'EdDSA', 401],
    ['a key of another type', generateKeyPairSync('ed25519'), 'RS256', 401],
    ['an RSA key of 2,048 bits, which is of use', generateKeyPairSync('rsa', { modulusLength: 2_048 }), 'RS256', 200],
  ] as const)('%s', async (_, pair, alg, status) => {
    const { url, token } = await issueWith(pair, alg);
    const ask = await guard({ issuers: [url], algorithms: ['RS256', 'EdDSA'] });
    expect(await ask(token)).toMatchObject({ status });
  });
});

describe('clocks that differ', () => {
  const NOW = 1_800_000_000;
  test.each([
    ['exp', -29, 200],
    ['exp', -30, 401],
    ['nbf', 30, 200],
    ['nbf', 31, 401],
    ['iat', 30, 200],
    ['iat', 31, 401],
  ])('%s %i s from now, with 30 s of tolerance: %i', async (claim, offset, status) => {
    vi.useFakeTimers({ toFake: ['Date'], now: NOW * 1_000 });
    const issuer = await issue();
    const ask = await guard({ issuers: [issuer.url], clockToleranceSeconds: 30 });
    expect(await ask(await issuer.sign({ [claim]: NOW + offset }))).toMatchObject({ status });
  });
});

test('ignores environment variables of the library', async () => {
  const names = {
    SECRET: 's',
    ISSUER: 'i',
    ISSUER_BASE_URL: 'http://x',
    JWKS_URI: 'http://y',
    AUDIENCE: 'a',
    TOKEN_SIGNING_ALG: 'HS256',
  };
  for (const [name, value] of Object.entries(names)) vi.stubEnv(name, value);
  try {
    const issuer = await issue();
    const ask = await guard({ issuers: [issuer.url] });
    expect(await ask(await issuer.sign())).toMatchObject({ status: 200 });
    expect(await ask(await issuer.sign({ aud: 'a' }))).toMatchObject({ status: 401 });
  } finally {
    vi.unstubAllEnvs();
  }
});
