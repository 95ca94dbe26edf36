import { open, type SealKeys, seal } from './seal.ts';

/** What the dispatcher needs to call an endpoint. Sealed in Redis, because URL and headers may contain secrets. */
export interface EndpointConfig {
  readonly url: string;
  readonly timeoutMs: number;
  /** Waits after the 1st, 2nd, … failed attempt, ms; then the event becomes a dead letter. */
  readonly retryMs: readonly number[];
  readonly headers: Readonly<Record<string, string>>;
  /** Version of the signing secret, and when it became the newest. Its predecessor signs for 24 h more. */
  readonly secretVersion: number;
  readonly rotatedAtMs?: number;
}

function context(subscription: string): string {
  return `${subscription}/endpoint`;
}

/** Seals a configuration for its subscription (`sub_…`); equal input gives equal text. */
export function sealEndpoint(keys: SealKeys, subscription: string, config: EndpointConfig): string {
  return seal(keys, context(subscription), JSON.stringify(config));
}

/** Opens the text of `sealEndpoint`. @throws SealError with another root key or for another subscription */
export function openEndpoint(keys: SealKeys, subscription: string, sealed: string): EndpointConfig {
  return JSON.parse(open(keys, context(subscription), sealed).toString('utf8')) as EndpointConfig;
}
