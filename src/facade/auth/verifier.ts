import { auth } from 'express-oauth2-jwt-bearer';
import type { KeySet } from './issuer-documents.ts';
import type { TokenRules } from './token-fault.ts';

/** Express middleware that verifies a bearer token and puts `auth` on the request. */
export type Verifier = ReturnType<typeof auth>;

/** The middleware for tokens of `issuer` that are signed with `algorithm` by one of `keys`. */
export type FindVerifier = (issuer: string, algorithm: string, keys: KeySet) => Verifier;

/**
 * Makes the middleware, once for each key set and algorithm: the library takes one fixed algorithm, and is given the
 * keys, because by itself it waits for an issuer that does not answer for ever, and says `invalid token` then.
 */
export function createVerifiers({ audience, clockToleranceSeconds }: TokenRules): FindVerifier {
  const made = new WeakMap<KeySet, Map<string, Verifier>>();
  return (issuer, algorithm, keys) => {
    const verifiers = made.get(keys) ?? new Map<string, Verifier>();
    made.set(keys, verifiers);
    const verifier =
      verifiers.get(algorithm) ??
      auth({
        issuer,
        audience,
        publicKey: keys,
        tokenSigningAlg: algorithm,
        clockTolerance: clockToleranceSeconds,
        dpop: { enabled: false },
        // Said, because for what is not said the library reads ISSUER_BASE_URL, JWKS_URI and SECRET of the environment.
        issuerBaseURL: '',
        jwksUri: '',
        secret: '',
      });
    verifiers.set(algorithm, verifier);
    return verifier;
  };
}
