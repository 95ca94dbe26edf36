import { auth } from 'express-oauth2-jwt-bearer';
import type { KeySet } from './issuer-documents.ts';
import type { TokenRules } from './token-fault.ts';

/** Express middleware that verifies a bearer token and puts `auth` on the request. */
export type Verifier = ReturnType<typeof auth>;

/** Returns the middleware for tokens of `issuer`, signed with `algorithm` by one of `keys`. */
type FindVerifier = (issuer: string, algorithm: string, keys: KeySet) => Verifier;

/**
 * Creates the middleware once per key set and algorithm. The library takes one fixed algorithm. It gets the keys from
 * us: by itself it waits forever for an issuer that does not answer, and then reports `invalid token`.
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
        // Set explicitly: otherwise the library reads ISSUER_BASE_URL, JWKS_URI and SECRET from the environment.
        issuerBaseURL: '',
        jwksUri: '',
        secret: '',
      });
    verifiers.set(algorithm, verifier);
    return verifier;
  };
}
