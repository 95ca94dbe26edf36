import type { KeyRing } from './key-ring.ts';
import { open, SealError, seal } from './seal.ts';

/** The subscription for which a header value is encrypted, and the endpoint that may receive the value. */
export interface SealOwner {
  /** `sub_…` */
  readonly subscription: string;
  /** The value of `status.signing.salt`. Undefined for a subscription without a salt. */
  readonly salt: string | undefined;
  /** The time at which the subscription was created, in milliseconds. Undefined if it has not been created yet. */
  readonly createdMs: number | undefined;
  /** URL of the endpoint. Only the origin is used so that a value is never sent to another host. */
  readonly url: string;
}

/** Encrypts endpoint header values in custom resources. */
export interface HeaderSeals {
  /** Encrypts a header value with the first root key. Deterministic for existing subscriptions. */
  readonly seal: (owner: SealOwner, header: string, value: string) => string;
  /** Decrypts a value. Returns undefined if the root key, subscription, origin, or header does not match. */
  readonly open: (owner: SealOwner, header: string, sealed: string) => string | undefined;
}

/**
 * Largest difference between the facade's clock when it encrypts a value for a new subscription, and the clock of
 * the API server when it creates the subscription.
 */
const NEW_WITHIN_MS = 5 * 60_000;

/**
 * Returns the context of a value. The context prevents copying the value to another subscription, to a later
 * subscription with the same name, or to another header or origin. Header names are not case-sensitive.
 *
 * @param life distinguishes the subscription from other subscriptions with the same name
 */
function contextOf({ subscription, url }: SealOwner, life: string, header: string): string {
  const origin = URL.parse(url)?.origin ?? '';
  return `${subscription}/header/${life}/${origin}/${header.toLowerCase()}`;
}

/** The context of a value if the subscription does not have a salt yet. */
const NEW = 'new';
const createdAt = (ms: number) => `created ${ms}`;

/**
 * Creates seals for endpoint header values, which use a single byte for each character. Values are bound to the salt of
 * the subscription, or to its creation time if it does not have a salt yet. The value for a new subscription contains
 * the current time instead and can only be used in a subscription that is created within five minutes.
 */
export function createHeaderSeals(keys: KeyRing, wallMs: () => number): HeaderSeals {
  function openIn(context: string, sealed: string): string | undefined {
    try {
      return open(keys, context, sealed).toString('latin1');
    } catch (error) {
      if (error instanceof SealError) return undefined;
      throw error;
    }
  }

  function openNew(owner: SealOwner, header: string, sealed: string): string | undefined {
    const [, ms, value] = /^(\d+) (.*)$/s.exec(openIn(contextOf(owner, NEW, header), sealed) ?? '') ?? [];
    const createdMs = owner.createdMs ?? wallMs();
    return Math.abs(Number(ms) - createdMs) <= NEW_WITHIN_MS ? value : undefined;
  }

  return {
    seal(owner, header, value) {
      const { salt, createdMs } = owner;
      const life = salt ?? (createdMs === undefined ? NEW : createdAt(createdMs));
      const text = life === NEW ? `${wallMs()} ${value}` : value;
      return seal(keys.first().sealKeys, contextOf(owner, life, header), Buffer.from(text, 'latin1'));
    },
    open(owner, header, sealed) {
      const { salt, createdMs } = owner;
      const lives = [...(salt === undefined ? [] : [salt]), ...(createdMs === undefined ? [] : [createdAt(createdMs)])];
      for (const life of lives) {
        const value = openIn(contextOf(owner, life, header), sealed);
        if (value !== undefined) return value;
      }
      return openNew(owner, header, sealed);
    },
  };
}
