import { open, type SealKeys, seal } from './seal.ts';

/**
 * The configuration that the dispatcher requires to call an endpoint. It is encrypted in Redis because the URL and the
 * headers can contain secrets.
 */
export interface EndpointConfig {
  readonly url: string;
  readonly timeoutMs: number;
  /** The waits after each failed attempt in milliseconds. After the last wait, the event becomes a dead letter. */
  readonly retryMs: readonly number[];
  readonly headers: Readonly<Record<string, string>>;
  /**
   * The version of the signing secret and the time when it was created. The previous version is used for another 24
   * hours.
   */
  readonly secretVersion: number;
  readonly rotatedAtMs?: number;
}

function context(subscription: string): string {
  return `${subscription}/endpoint`;
}

/** Encrypts the configuration of a subscription (`sub_…`). The same input always returns the same text. */
export function sealEndpoint(keys: SealKeys, subscription: string, config: EndpointConfig): string {
  return seal(keys, context(subscription), JSON.stringify(config));
}

/** Decrypts the text of `sealEndpoint`. @throws SealError if the root key or the subscription is different */
export function openEndpoint(keys: SealKeys, subscription: string, sealed: string): EndpointConfig {
  return JSON.parse(open(keys, context(subscription), sealed).toString('utf8')) as EndpointConfig;
}
