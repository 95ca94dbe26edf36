import { auth } from 'express-oauth2-jwt-bearer';
import type { KeySet } from './issuer-documents.ts';
import type { TokenRules } from './token-fault.ts';

/** Express middleware that verifies a bearer token and sets `auth` on the request. */
export type Verifier = ReturnType<typeof auth>;

/**
 * Returns the middleware for tokens which were issued by `issuer` and signed with one of the `keys` using `algorithm`.
 */
type FindVerifier = (issuer: string, algorithm: string, keys: KeySet) => Verifier;

/**
 * Creates a function that returns the middleware, cached by key set and algorithm (the library needs a fixed
 * algorithm). The keys are passed in because otherwise the library would wait for an unresponsive issuer without a
 * timeout and then report `invalid token`.
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
        // This must be set explicitly. Otherwise the library would read ISSUER_BASE_URL, JWKS_URI, and SECRET from the
        // environment.
        issuerBaseURL: '',
        jwksUri: '',
        secret: '',
      });
    verifiers.set(algorithm, verifier);
    return verifier;
  };
}
