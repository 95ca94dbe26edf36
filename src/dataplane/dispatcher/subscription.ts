import { type EndpointConfig, openEndpoint } from '../../core/delivery/endpoint-config.ts';
import type { KeyRing } from '../../core/delivery/key-ring.ts';
import { ROTATION_OVERLAP_MS, signingKeys } from '../../core/delivery/signing-secret.ts';
import { type BuildHeaders, createHeaderBuilder } from './headers.ts';
import { createSigner } from './signature.ts';

/**
 * OpenSubscription is a subscription with decrypted configuration. Any values shared by all attempts are prepared up
 * front.
 */
export interface OpenSubscription {
  readonly cfgv: string;
  readonly source: EventSource;
  readonly endpoint: EndpointConfig;
  readonly buildHeaders: BuildHeaders;
  /** The time in milliseconds at which the signing keys change, i.e. when the overlap of a rotation ends. */
  readonly validUntilMs: number;
}

/** Stream of an event. */
export interface EventSource {
  readonly tenant: string;
  readonly queue: string;
  readonly gen: string;
}

/** A subscription's configuration, with its endpoint encrypted. */
export interface SealedSubscription extends EventSource {
  /** `sub_…` */
  readonly sub: string;
  readonly cfgv: string;
  readonly endpoint: string;
}

/** Decrypts a subscription's configuration. */
export function openSubscription(
  sealed: SealedSubscription,
  keys: KeyRing,
  version: string,
  nowMs: number,
): OpenSubscription {
  const { sub, cfgv, tenant, queue, gen } = sealed;
  const endpoint = openEndpoint(keys, sub, sealed.endpoint);
  const { secretVersion, rotatedAtMs } = endpoint;
  const signing = signingKeys(keys, { ...endpoint, subscriptionId: sub }, secretVersion, rotatedAtMs, nowMs);
  return {
    cfgv,
    source: { tenant, queue, gen },
    endpoint,
    buildHeaders: createHeaderBuilder({ version, sign: createSigner(signing), extra: endpoint.headers }),
    validUntilMs: signing.length > 1 ? (rotatedAtMs ?? 0) + ROTATION_OVERLAP_MS : Number.POSITIVE_INFINITY,
  };
}
