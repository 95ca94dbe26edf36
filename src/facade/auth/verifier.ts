import { auth } from 'express-oauth2-jwt-bearer';
import type { KeySet } from './issuer-documents.ts';
import type { TokenRules } from './token-fault.ts';

/** Express middleware that verifies a bearer token and sets `auth` on the request. */
export type Verifier = ReturnType<typeof auth>;

/** Identifies the key of a token. An issuer may publish several keys with the same `kid`. */
interface TokenKey {
  readonly issuer: string;
  readonly algorithm: string;
  readonly kid: string;
}

/** Returns the middlewares for tokens that were signed with one of the `keys`, one for each key with this `kid`. */
type FindVerifiers = (key: TokenKey, keys: KeySet) => readonly Verifier[];

/** The number of keys with the same `kid` to try, which limits the cost of a forged token. */
const MOST_KEYS = 4;

/**
 * Creates a function that returns the middlewares, cached by key and algorithm (the library needs a fixed algorithm, and
 * refuses all tokens if several keys match). The keys are passed in because otherwise the library would wait for an
 * unresponsive issuer without a timeout and then report `invalid token`.
 */
export function createVerifiers({ audience, clockToleranceSeconds }: TokenRules): FindVerifiers {
  type Key = KeySet['keys'][number];
  const made = new WeakMap<Key, Map<string, Verifier>>();
  const verifierOf = (key: Key, { issuer, algorithm }: TokenKey): Verifier => {
    const verifiers = made.get(key) ?? new Map<string, Verifier>();
    made.set(key, verifiers);
    const verifier =
      verifiers.get(algorithm) ??
      auth({
        issuer,
        audience,
        publicKey: { keys: [key] },
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
  return (wanted, { keys }) =>
    keys
      .filter(({ kid }) => kid === wanted.kid)
      .slice(0, MOST_KEYS)
      .map(key => verifierOf(key, wanted));
}
