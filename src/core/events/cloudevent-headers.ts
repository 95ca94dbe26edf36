import { isHeaderValue } from '../delivery/header-value.ts';
import { isAttributeName } from './cloudevent-attributes.ts';
import { isStructuredCloudEvent } from './context-headers-cloudevent.ts';
import type { EventMeta } from './event-meta.ts';

/** The `ce-type` for events without a type, because this attribute is required by CloudEvents. */
const UNTYPED = 'event';

const NEEDS_ENCODING = /[^\x21\x23\x24\x26-\x7e]/;

/** Percent-encodes everything outside U+0021 to U+007E as UTF-8, as well as double quotes and percent signs. */
export function percentEncode(value: string): string {
  let encoded = '';
  for (const byte of Buffer.from(value, 'utf8')) {
    const plain = byte > 0x20 && byte < 0x7f && byte !== 0x22 && byte !== 0x25;
    encoded += plain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return encoded;
}

/**
 * Encodes a CloudEvents attribute for use as a header value. Spaces, double quotes, percent signs, and anything outside
 * U+0021 to U+007E will be percent-encoded as UTF-8 (CloudEvents HTTP protocol binding 1.0.2, 3.1.3.2).
 */
export function encodeAttribute(value: string): string {
  return NEEDS_ENCODING.test(value) ? percentEncode(value) : value;
}

/**
 * Returns the `ce-` headers of an event, as a flat list of names and values. In binary mode, an event keeps its
 * producer's headers. For structured events, no headers are added, because the attributes are already part of the body.
 * We add attributes to all other events so that receivers can read them as CloudEvents.
 */
export function cloudEventHeaders(meta: EventMeta): string[] {
  if (isStructuredCloudEvent(meta.contentType)) return [];
  const headers: string[] = [];
  if (meta.attributes !== undefined) {
    for (const name in meta.attributes) {
      const value = meta.attributes[name];
      if (value === undefined || !isAttributeName(name) || !isHeaderValue(value)) continue;
      headers.push(`ce-${name}`, value);
    }
    return headers;
  }
  headers.push(
    'ce-specversion',
    '1.0',
    'ce-id',
    encodeAttribute(meta.id),
    'ce-source',
    encodeAttribute(meta.source),
    'ce-type',
    encodeAttribute(meta.type || UNTYPED),
    'ce-time',
    new Date(meta.time).toISOString(),
  );
  // CloudEvents does not allow empty attributes, and test events have no group key.
  if (meta.groupKey !== '') headers.push('ce-partitionkey', encodeAttribute(meta.groupKey));
  return headers;
}
