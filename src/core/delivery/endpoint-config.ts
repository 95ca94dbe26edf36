import { open, type SealKeys, type SealRing, seal } from './seal.ts';

/**
 * Configuration needed by the dispatcher to call an endpoint. This configuration is encrypted before storing it in
 * Redis because the URL and the headers may contain secrets.
 */
export interface EndpointConfig {
  readonly url: string;
  readonly timeoutMs: number;
  /**
   * The delay after each failed attempt, in milliseconds. When the last attempt has failed, the event becomes a dead
   * letter.
   */
  readonly retryMs: readonly number[];
  readonly headers: Readonly<Record<string, string>>;
  /** The salt to use for the signing secrets. The salt is taken from the Subscription status. */
  readonly salt: string;
  /**
   * The version of the signing secret, and the time at which this version was created. The previous version remains in
   * use for another 24 hours.
   */
  readonly secretVersion: number;
  readonly rotatedAtMs?: number;
  /**
   * The ids of the root keys from which this version and the previous version are derived. Absent for the oldest root
   * key.
   */
  readonly key?: string;
  readonly previousKey?: string;
}

function context(subscription: string): string {
  return `${subscription}/endpoint`;
}

/**
 * Encrypts the configuration for the given subscription (`sub_…`). Deterministic: the same input always results in the
 * same text.
 */
export function sealEndpoint(keys: SealKeys, subscription: string, config: EndpointConfig): string {
  return seal(keys, context(subscription), JSON.stringify(config));
}

/** Decrypts text produced by `sealEndpoint`. @throws SealError if the root key or subscription doesn't match */
export function openEndpoint(ring: SealRing, subscription: string, sealed: string): EndpointConfig {
  return JSON.parse(open(ring, context(subscription), sealed).toString('utf8')) as EndpointConfig;
}
