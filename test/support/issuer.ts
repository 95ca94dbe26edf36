import { OAuth2Server } from 'oauth2-mock-server';
import type { CertificateFiles } from './certificates.ts';

/** The claims of a person or program, in addition to the issuer, audience, and times. */
export interface Claims {
  readonly sub: string;
  readonly groups?: readonly string[];
  readonly client_id?: string;
  readonly email?: string;
  readonly email_verified?: boolean;
}

/** A real OIDC issuer on loopback with keys, discovery, and JWKS. */
export interface Issuer {
  /** The `iss` claim of its tokens. */
  readonly url: string;
  /** The variables for a facade that accepts its tokens. */
  readonly env: Readonly<Record<string, string>>;
  readonly token: (claims: Claims, options?: { readonly expiresInSeconds?: number }) => Promise<string>;
  readonly close: () => Promise<void>;
}

export const AUDIENCE = 'https://sluice.example';

/**
 * Starts an issuer, with TLS if there is a certificate.
 * @param port defaults to 0, which picks a free port
 */
export async function startIssuer(port = 0, certificate?: CertificateFiles, host = '127.0.0.1'): Promise<Issuer> {
  const server = new OAuth2Server(certificate?.key, certificate?.cert);
  await server.issuer.keys.generate('RS256');
  await server.start(port, host);
  const { url } = server.issuer;
  if (url === undefined) throw new Error('the issuer has no address');
  return {
    url,
    env: { SLUICE_OIDC_ISSUERS: url, SLUICE_OIDC_AUDIENCE: AUDIENCE },
    token: (claims, { expiresInSeconds = 3_600 } = {}) =>
      server.issuer.buildToken({
        expiresIn: expiresInSeconds,
        scopesOrTransform: (_header, payload) => Object.assign(payload, { aud: AUDIENCE, ...claims }),
      }),
    close: () => server.stop(),
  };
}
