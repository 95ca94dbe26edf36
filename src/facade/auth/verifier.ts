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

/** Returns the middlewares for tokens that were signed with one of the `keys`, one for each key to try. */
type FindVerifiers = (key: TokenKey, keys: KeySet) => readonly Verifier[];

/** The number of keys with the same `kid` to try, which limits the cost of a forged token. */
const MOST_KEYS = 4;

type Key = KeySet['keys'][number];

/** The type of the keys for each family of algorithms (RFC 7518, RFC 8037), named by its first two letters. */
const KEY_TYPES: Readonly<Record<string, string>> = { RS: 'RSA', PS: 'RSA', ES: 'EC', Ed: 'OKP' };

/**
 * Returns true if this may be the key of the token. Some issuers publish a key once for each algorithm, or use the same
 * `kid` for keys of several types, most of which don't have to be tried.
 */
function mayBeKeyOf({ kid, algorithm }: TokenKey, key: Key): boolean {
  const { use, alg } = key as Readonly<Record<string, unknown>>;
  if (key.kid !== kid || key.kty !== KEY_TYPES[algorithm.slice(0, 2)]) return false;
  return (use === undefined || use === 'sig') && (alg === undefined || alg === algorithm);
}

/**
 * Creates a function that returns the middlewares, cached by key and algorithm (the library needs a fixed algorithm,
 * and refuses all tokens if several keys match). The keys are passed in because otherwise the library would wait for an
 * unresponsive issuer without a timeout and then report `invalid token`.
 */
export function createVerifiers({ audience, clockToleranceSeconds }: TokenRules): FindVerifiers {
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
        // Set these options explicitly, so that the library does not read ISSUER_BASE_URL, JWKS_URI, and SECRET from
        // the environment.
        issuerBaseURL: '',
        jwksUri: '',
        secret: '',
      });
    verifiers.set(algorithm, verifier);
    return verifier;
  };
  return (wanted, { keys }) =>
    keys
      .filter(key => mayBeKeyOf(wanted, key))
      .slice(0, MOST_KEYS)
      .map(key => verifierOf(key, wanted));
}
