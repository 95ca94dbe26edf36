import { type EndpointConfig, openEndpoint } from '../../core/delivery/endpoint-config.ts';
import type { SealKeys } from '../../core/delivery/seal.ts';
import { ROTATION_OVERLAP_MS, signingKeys } from '../../core/delivery/signing-secret.ts';
import type { InboxRef, InboxStore } from '../../redis/inbox-store.ts';
import type { EventSource } from './event-cache.ts';
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
  /** Time in milliseconds at which the signing keys change, i.e. when the overlap of a rotation ends. */
  readonly validUntilMs: number;
}

export interface SubscriptionKeys {
  readonly rootKey: Uint8Array;
  readonly sealKeys: SealKeys;
}

/**
 * Reads and decrypts the subscription configuration. Returns undefined if there is no such subscription, or if it has
 * no endpoint.
 */
export async function openSubscription(
  inboxes: Pick<InboxStore, 'readSubscription'>,
  keys: SubscriptionKeys,
  version: string,
  inbox: InboxRef,
  nowMs: number,
): Promise<OpenSubscription | undefined> {
  const fields = await inboxes.readSubscription(inbox.integration, inbox.sub);
  if (fields === undefined || fields.endpoint === undefined || fields.inc !== inbox.inc) return undefined;
  const endpoint = openEndpoint(keys.sealKeys, inbox.sub, fields.endpoint);
  const { secretVersion, rotatedAtMs } = endpoint;
  const signing = signingKeys({ rootKey: keys.rootKey, subscriptionId: inbox.sub }, secretVersion, rotatedAtMs, nowMs);
  return {
    cfgv: fields.cfgv ?? '',
    source: { tenant: fields.tenant ?? '', queue: fields.queue ?? '', gen: fields.gen ?? '' },
    endpoint,
    buildHeaders: createHeaderBuilder({ version, sign: createSigner(signing), extra: endpoint.headers }),
    validUntilMs: signing.length > 1 ? (rotatedAtMs ?? 0) + ROTATION_OVERLAP_MS : Number.POSITIVE_INFINITY,
  };
}
