import { importJWK, type JWK, SignJWT } from 'jose';
import { OAuth2Server } from 'oauth2-mock-server';

export const AUDIENCE = 'sluice-tests';

type Members = Readonly<Record<string, unknown>>;

/** A real identity provider on a separate port. */
export interface TestIssuer {
  readonly url: string;
  /** The issuer's address, `host:port`. */
  readonly port: number;
  /** The URL of the public keys. */
  readonly keysUrl: string;
  /** Returns the number of times that its metadata and its keys were read. */
  readonly reads: () => number;
  /** The private key used for signing, including `alg` and `kid`. */
  readonly key: () => JWK;
  /**
   * Returns a token that is valid for one hour. `claims` and `header` override its members, and undefined values remove
   * them.
   */
  readonly sign: (claims?: Members, header?: Members) => Promise<string>;
  /** Publishes an additional key, and uses it for signing from then on. */
  readonly rotate: (kid: string) => Promise<void>;
  readonly stop: () => Promise<void>;
  /** Starts the issuer again after `stop`, using the same address and the same keys. */
  readonly restart: () => Promise<void>;
}

export async function startIssuer(alg = 'RS256', kid = 'first'): Promise<TestIssuer> {
  const server = new OAuth2Server();
  await server.issuer.keys.generate(alg, { kid });
  await server.start(0, '127.0.0.1');
  const { port } = server.address();
  const url = server.issuer.url as string;
  let reads = 0;
  let signing = kid;
  const keysUrl = `${url}/keys`;
  server.service.on('beforeWellKnownOpenIdConfiguration', ({ body }: { body: Record<string, unknown> }) => {
    reads += 1;
    body['jwks_uri'] = keysUrl;
  });
  server.service.addRoute('GET', '/keys', (_request, response) => {
    reads += 1;
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ keys: server.issuer.keys.toJSON() }));
  });
  const key = () => server.issuer.keys.toJSON(true).find(each => each.kid === signing) as JWK;
  return {
    url,
    port,
    keysUrl,
    reads: () => reads,
    key,
    sign: (claims, header) => signToken(key(), { ...goodClaims(url), ...claims }, header),
    async rotate(next) {
      await server.issuer.keys.generate(alg, { kid: next });
      signing = next;
    },
    stop: () => server.stop(),
    restart: () => server.start(port, '127.0.0.1'),
  };
}

/** Returns the claims of a valid token. */
export function goodClaims(issuer: string): Members {
  const now = Math.floor(Date.now() / 1_000);
  return { iss: issuer, aud: AUDIENCE, sub: 'ada', iat: now, nbf: now, exp: now + 3_600 };
}

/** Signs claims with a private key, using its `alg` and `kid` unless they are overridden by `header`. */
export async function signToken(key: JWK, claims: Members, header: Members = {}): Promise<string> {
  const alg = key.alg as string;
  const protectedHeader = { alg, kid: key.kid as string, typ: 'JWT', ...header };
  const crit = Object.fromEntries(((protectedHeader as { crit?: string[] }).crit ?? []).map(name => [name, true]));
  return new SignJWT({ ...claims }).setProtectedHeader(protectedHeader).sign(await importJWK(key, alg), { crit });
}
