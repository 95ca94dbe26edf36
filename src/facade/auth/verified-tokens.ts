import { hash } from 'node:crypto';
import { createExpiringMap } from '../../time/expiring-map.ts';
import type { Identity } from './identity.ts';
import type { KeySet } from './issuer-documents.ts';

/** How long a signature counts as verified. Checking one takes longer than all other steps of a call together. */
const KEPT_MS = 30_000;
/** Tokens with a valid signature that are kept in memory. */
const ENTRIES = 10_000;

interface Verified {
  readonly identity: Identity;
  /** Keys of the issuer that the signature was checked with. */
  readonly keys: KeySet;
}

/**
 * VerifiedTokens remembers whose signatures are valid. Nothing else of a token may be left out because of it: times,
 * issuer, and audience have to be checked for each call.
 */
export interface VerifiedTokens {
  /** Returns the identity in a token that was verified with these keys, or undefined. */
  readonly find: (token: string, keys: KeySet) => Identity | undefined;
  readonly add: (token: string, keys: KeySet, identity: Identity) => void;
}

/**
 * Creates the memory. Tokens are identified by their SHA-256, so that none of them can be read from it. Once the keys of an
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
