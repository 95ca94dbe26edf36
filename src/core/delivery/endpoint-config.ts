import { open, type SealKeys, seal } from './seal.ts';

/**
 * Configuration needed by the dispatcher to call an endpoint. Encrypted in Redis, as the URL and headers may contain
 * secrets.
 */
export interface EndpointConfig {
  readonly url: string;
  readonly timeoutMs: number;
  /** Delays after each failed attempt, in milliseconds. After the last one, the event becomes a dead letter. */
  readonly retryMs: readonly number[];
  readonly headers: Readonly<Record<string, string>>;
  /** Salt of the signing secrets, from the status of the Subscription. */
  readonly salt: string;
  /** Version of the signing secret and when it was created. The previous version stays in use for another 24 hours. */
  readonly secretVersion: number;
  readonly rotatedAtMs?: number;
}

function context(subscription: string): string {
  return `${subscription}/endpoint`;
}

/**
 * Encrypts the configuration of a subscription (`sub_…`). Deterministic: the same input always results in the same
 * text.
 */
export function sealEndpoint(keys: SealKeys, subscription: string, config: EndpointConfig): string {
  return seal(keys, context(subscription), JSON.stringify(config));
}

/** Decrypts text produced by `sealEndpoint`. @throws SealError if the root key or subscription doesn't match */
export function openEndpoint(keys: SealKeys, subscription: string, sealed: string): EndpointConfig {
  return JSON.parse(open(keys, context(subscription), sealed).toString('utf8')) as EndpointConfig;
}
