import { mayEndpointSet, mayForward } from '../../api/header-names.ts';
import type { EventMeta } from '../../core/event-meta.ts';
import { isHeaderValue } from '../../core/header-value.ts';
import type { Sign } from './signature.ts';

/** `ce-type` of an event that came without a type: CloudEvents requires one. */
export const UNTYPED = 'event';

const NEEDS_ENCODING = /[^\x21\x23\x24\x26-\x7e]/;
const VISIBLE_ASCII = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;

function percentEncode(value: string): string {
  let encoded = '';
  for (const byte of Buffer.from(value, 'utf8')) {
    const plain = byte > 0x20 && byte < 0x7f && byte !== 0x22 && byte !== 0x25;
    encoded += plain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return encoded;
}

/**
 * A CloudEvents attribute as a header value: space, double quote, percent and everything outside U+0021 to U+007E is
 * percent-encoded as UTF-8 (CloudEvents HTTP protocol binding 1.0.2, 3.1.3.2).
 */
export function encodeAttribute(value: string): string {
  return NEEDS_ENCODING.test(value) ? percentEncode(value) : value;
}

/**
 * The id as `webhook-id` carries it and as it is signed: verbatim, unless a header cannot carry it (ids of events in
 * structured mode may hold any character); then encoded as an attribute.
 */
export function webhookId(id: string): string {
  return VISIBLE_ASCII.test(id) ? id : percentEncode(id);
}

/** `(event, body, timestampMs, replayId?)` to a flat list of names and values, as undici takes them. */
export type BuildHeaders = (meta: EventMeta, body: Uint8Array, timestampMs: number, replayId?: string) => string[];

/**
 * Headers of one attempt: Standard Webhooks, CloudEvents binary mode, `traceparent`, the producer's forwarded headers
 * and the endpoint's own, which win over forwarded ones. Reserved names are dropped from both. Make it once per
 * endpoint and keep it.
 *
 * @param version of the product, for `user-agent: sluice/<version>`
 * @param extra the endpoint's own headers, by name
 */
export function createHeaderBuilder(endpoint: {
  version: string;
  sign: Sign;
  extra?: Readonly<Record<string, string>>;
}): BuildHeaders {
  const { sign } = endpoint;
  const fixed: string[] = ['user-agent', `sluice/${endpoint.version}`, 'ce-specversion', '1.0'];
  // Each name once, in whatever cases it was written: the last one counts.
  const own = new Map<string, string>();
  for (const [name, value] of Object.entries(endpoint.extra ?? {})) {
    if (mayEndpointSet(name) && isHeaderValue(value)) own.set(name.toLowerCase(), value);
  }
  fixed.push(...[...own].flat());
  return (meta, body, timestampMs, replayId) => {
    const id = webhookId(meta.id);
    const timestampSeconds = Math.floor(timestampMs / 1000);
    const headers = fixed.slice();
    headers.push(
      'webhook-id',
      id,
      'webhook-timestamp',
      String(timestampSeconds),
      'webhook-signature',
      sign(id, timestampSeconds, body),
      'ce-id',
      encodeAttribute(meta.id),
      'ce-source',
      encodeAttribute(meta.source),
      'ce-type',
      encodeAttribute(meta.type || UNTYPED),
      'ce-time',
      new Date(meta.time).toISOString(),
    );
    // A test event has none, and CloudEvents knows no empty attribute.
    if (meta.groupKey !== '') headers.push('ce-partitionkey', encodeAttribute(meta.groupKey));
    if (meta.contentType !== undefined && isHeaderValue(meta.contentType)) {
      headers.push('content-type', meta.contentType);
    }
    if (meta.traceparent !== undefined && isHeaderValue(meta.traceparent))
      headers.push('traceparent', meta.traceparent);
    if (replayId !== undefined) headers.push('webhook-replay', replayId);
    if (meta.forward !== undefined) {
      for (const name in meta.forward) {
        const value = meta.forward[name];
        if (value === undefined || own.has(name.toLowerCase()) || !mayForward(name) || !isHeaderValue(value)) continue;
        headers.push(name, value);
      }
    }
    return headers;
  };
}
