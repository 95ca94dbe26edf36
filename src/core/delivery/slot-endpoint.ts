import { type EndpointConfig, sealEndpoint } from './endpoint-config.ts';
import type { SealKeys } from './seal.ts';

/** The endpoint's owner, which is a subscription (`sub_…`) and its incarnation. The hash of both is the slot. */
export interface EndpointOwner {
  readonly subscription: string;
  readonly inc: string;
}

/**
 * Encrypts the endpoint for the given slot. The text starts with `<subscription>.<inc> ` because the slot alone does
 * not identify the subscription from which signing keys are derived.
 */
export function sealSlotEndpoint(keys: SealKeys, { subscription, inc }: EndpointOwner, config: EndpointConfig): string {
  return `${subscription}.${inc} ${sealEndpoint(keys, subscription, config)}`;
}

/** Returns the owner and the sealed endpoint. Returns undefined if the text has a different format. */
export function parseSlotEndpoint(text: string): (EndpointOwner & { readonly sealed: string }) | undefined {
  const [, subscription, inc, sealed] = /^([^. ]+)\.(\S+) (\S+)$/.exec(text) ?? [];
  if (subscription === undefined || inc === undefined || sealed === undefined) return undefined;
  return { subscription, inc, sealed };
}
