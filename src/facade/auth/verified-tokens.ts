import { hash } from 'node:crypto';
import { createExpiringMap } from '../../time/expiring-map.ts';
import type { Identity } from './identity.ts';
import type { KeySet } from './issuer-documents.ts';

/**
 * The time for which a verified signature remains valid. Verifying a signature takes longer than all other steps of a
 * call.
 */
const KEPT_MS = 30_000;
/** The number of tokens with a valid signature that are kept in memory. */
const ENTRIES = 10_000;

interface Verified {
  readonly identity: Identity;
  /** The issuer keys used to verify the signature. */
  readonly keys: KeySet;
}

/**
 * VerifiedTokens remembers tokens with a valid signature. All other checks are still required for each call: times,
 * issuer, and audience.
 */
export interface VerifiedTokens {
  /** Returns the identity of a token that was verified using these keys, or undefined. */
  readonly find: (token: string, keys: KeySet) => Identity | undefined;
  readonly add: (token: string, keys: KeySet, identity: Identity) => void;
}

/**
 * Creates the memory. Tokens are identified by their SHA-256, so they can't be read from memory. After the keys of an
 * issuer have been read again, its tokens are verified again.
 *
 * @param nowMs monotonic clock in milliseconds
 */
export function createVerifiedTokens(nowMs: () => number): VerifiedTokens {
  const verified = createExpiringMap<Verified>({ ttlMs: KEPT_MS, entries: ENTRIES, nowMs });
  const nameOf = (token: string) => hash('sha256', token, 'base64url');
  return {
    find(token, keys) {
      const known = verified.get(nameOf(token));
      return known?.keys === keys ? known.identity : undefined;
    },
    add: (token, keys, identity) => verified.set(nameOf(token), { identity, keys }),
  };
}
