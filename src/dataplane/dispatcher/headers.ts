import { mayEndpointSet, mayForward } from '../../api/header-names.ts';
import { isHeaderValue } from '../../core/delivery/header-value.ts';
import { cloudEventHeaders, percentEncode } from '../../core/events/cloudevent-headers.ts';
import type { EventMeta } from '../../core/events/event-meta.ts';
import { headerLines } from './http/request-head.ts';
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

/** Encodes a text as UTF-8, using a single character for each byte. Required for the values of headers. */
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

/** The headers which are the same for all of the receivers of an event, and those which not all of them accept. */
export interface EventHeaders {
  /** `webhook-id` */
  readonly id: string;
  /** The other headers, as lines of a request. Undefined if one of them is not allowed. */
  readonly lines: string | undefined;
  readonly forward: EventMeta['forward'];
}

/** Returns the headers to use for an attempt, as lines. If one of them is not allowed, this returns `undefined`. */
export type BuildHeaders = (
  event: EventHeaders,
  body: Uint8Array,
  timestampMs: number,
  replayId?: string,
) => string | undefined;

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
  const fixed = headerLines(['user-agent', `sluice/${endpoint.version}`, ...[...own].flat()]);
  return ({ id, lines, forward }, body, timestampMs, replayId) => {
    const timestampSeconds = Math.floor(timestampMs / 1000);
    const signature = sign(id, timestampSeconds, body);
    const signed = `webhook-id: ${id}\r\nwebhook-timestamp: ${timestampSeconds}\r\nwebhook-signature: ${signature}\r\n`;
    const more: string[] = [];
    if (replayId !== undefined) more.push('webhook-replay', replayId);
    if (forward !== undefined) {
      for (const name in forward) {
        const value = forward[name];
        if (value === undefined || own.has(name.toLowerCase()) || !mayForward(name) || !isHeaderValue(value)) continue;
        more.push(name, value);
      }
    }
    const others = headerLines(more);
    if (fixed === undefined || lines === undefined || others === undefined) return undefined;
    return fixed + signed + lines + others;
  };
}

/** Prepares the headers of an event for all of its receivers. */
export function eventHeaders(meta: EventMeta): EventHeaders {
  const headers = cloudEventHeaders(meta);
  // Use the same names and form as producers do when sending these values, regardless of the CloudEvent's attributes.
  if (meta.type !== undefined) headers.push('x-sluice-event-type', meta.type);
  // Test events have no group key.
  if (meta.groupKey !== '') headers.push('x-sluice-group-key', latin1OfUtf8(meta.groupKey));
  if (meta.contentType !== undefined && isHeaderValue(meta.contentType)) headers.push('content-type', meta.contentType);
  if (meta.traceparent !== undefined && isHeaderValue(meta.traceparent)) headers.push('traceparent', meta.traceparent);
  return { id: webhookId(meta.id), lines: headerLines(headers), forward: meta.forward };
}
