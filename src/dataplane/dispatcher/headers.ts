import { mayEndpointSet, mayForward } from '../../api/header-names.ts';
import { isHeaderValue } from '../../core/delivery/header-value.ts';
import { cloudEventHeaders, percentEncode } from '../../core/events/cloudevent-headers.ts';
import type { EventMeta } from '../../core/events/event-meta.ts';
import type { Sign } from './signature.ts';

const VISIBLE_ASCII = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;

/**
 * Returns the id which is used in `webhook-id` and for the signature. In structured mode, an id can contain any
 * character. If an id can't be sent in a header, we encode it in the same way as an attribute.
 */
export function webhookId(id: string): string {
  return VISIBLE_ASCII.test(id) ? id : percentEncode(id);
}

const ASCII = /^[\x20-\x7e]*$/;

/** Encodes a text as UTF-8, using a single character for each byte. This is required for the values of headers. */
function latin1OfUtf8(text: string): string {
  return ASCII.test(text) ? text : Buffer.from(text, 'utf8').toString('latin1');
}

/** Returns the headers configured on an endpoint, with their names in lower case. Reserved names are left out. */
export function endpointHeaders(headers: Readonly<Record<string, string>> = {}): ReadonlyMap<string, string> {
  // Names are case-insensitive. If a name is listed several times, the last value is used.
  const own = new Map<string, string>();
  for (const [name, value] of Object.entries(headers)) {
    if (mayEndpointSet(name) && isHeaderValue(value)) own.set(name.toLowerCase(), value);
  }
  return own;
}

/** Returns the headers to use for an attempt, as a flat list of names and values. */
export type BuildHeaders = (meta: EventMeta, body: Uint8Array, timestampMs: number, replayId?: string) => string[];

/**
 * Creates a function that can be used to build the headers for an attempt: Standard Webhooks and CloudEvents headers,
 * group key, type, `traceparent`, any headers forwarded by the producer, and those configured on the endpoint. Endpoint
 * headers override forwarded ones. Reserved names are stripped from both. You should only create this once for each
 * endpoint.
 *
 * @param version product version for `user-agent: sluice/<version>`
 * @param extra endpoint headers by name
 */
export function createHeaderBuilder(endpoint: {
  version: string;
  sign: Sign;
  extra?: Readonly<Record<string, string>>;
}): BuildHeaders {
  const { sign } = endpoint;
  const own = endpointHeaders(endpoint.extra);
  const fixed: string[] = ['user-agent', `sluice/${endpoint.version}`, ...[...own].flat()];
  return (meta, body, timestampMs, replayId) => {
    const { id, headers: ofEvent } = eventHeadersOf(meta);
    const timestampSeconds = Math.floor(timestampMs / 1000);
    const headers = fixed.concat(
      'webhook-id',
      id,
      'webhook-timestamp',
      String(timestampSeconds),
      'webhook-signature',
      sign(id, timestampSeconds, body),
      ofEvent,
    );
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

/** The headers which are the same for all of the receivers of an event. */
interface EventHeaders {
  readonly id: string;
  readonly headers: readonly string[];
}

/** If an event has many receivers, the same metadata object is used for all of them. */
const known = new WeakMap<EventMeta, EventHeaders>();

function eventHeadersOf(meta: EventMeta): EventHeaders {
  let made = known.get(meta);
  if (made === undefined) {
    made = { id: webhookId(meta.id), headers: eventHeaders(meta) };
    known.set(meta, made);
  }
  return made;
}

function eventHeaders(meta: EventMeta): string[] {
  const headers = cloudEventHeaders(meta);
  // Use the same names and form as producers do when sending these values, regardless of the CloudEvent's attributes.
  if (meta.type !== undefined) headers.push('x-sluice-event-type', meta.type);
  // Test events have no group key.
  if (meta.groupKey !== '') headers.push('x-sluice-group-key', latin1OfUtf8(meta.groupKey));
  if (meta.contentType !== undefined && isHeaderValue(meta.contentType)) headers.push('content-type', meta.contentType);
  if (meta.traceparent !== undefined && isHeaderValue(meta.traceparent)) headers.push('traceparent', meta.traceparent);
  return headers;
}
