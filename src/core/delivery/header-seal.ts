import { open, SealError, type SealKeys, seal } from './seal.ts';

/** Encrypts header values of endpoints in custom resources. */
export interface HeaderSeals {
  /**
   * Encrypts the value of a header for one subscription (`sub_…`). Deterministic: the same input always results in the
   * same text.
   */
  readonly seal: (subscription: string, header: string, value: string) => string;
  /** Decrypts a value. Returns undefined if the root key, subscription, or header doesn't match. */
  readonly open: (subscription: string, header: string, sealed: string) => string | undefined;
}

/** Returns the context of a value, which can't be copied to another subscription or header. Names ignore case. */
function context(subscription: string, header: string): string {
  return `${subscription}/header/${header.toLowerCase()}`;
}

/** Creates seals for the values of endpoint headers, which consist of one byte per character. */
export function createHeaderSeals(keys: SealKeys): HeaderSeals {
  return {
    seal: (subscription, header, value) => seal(keys, context(subscription, header), Buffer.from(value, 'latin1')),
    open(subscription, header, sealed) {
      try {
        return open(keys, context(subscription, header), sealed).toString('latin1');
      } catch (error) {
        if (error instanceof SealError) return undefined;
        throw error;
      }
    },
  };
}
