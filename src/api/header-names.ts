import { z } from 'zod';
import { withRule } from './rules.ts';

/** Headers reserved for HTTP, the dispatcher, or one of its protocols. They can't be set by endpoints or events. */
export const RESERVED_HEADERS: readonly string[] = [
  // Used for framing and connections (RFC 9110, 7.6.1; RFC 9112). Setting one of them could split the request.
  'connection',
  'content-length',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  // Would tell the receiver to decode the body, or to take it for a part of another one. It is sent as it is.
  'content-encoding',
  'content-range',
  // Set by the dispatcher on each delivery.
  'content-type',
  'date',
  'traceparent',
  'user-agent',
];

/** Prefixes reserved for Standard Webhooks, CloudEvents, and Sluice. */
export const RESERVED_HEADER_PREFIXES: readonly string[] = ['webhook-', 'ce-', 'x-sluice-'];

/**
 * Credentials in the producer's request to ingress. If we forwarded these, partners would receive the producer's keys.
 */
export const CREDENTIAL_HEADERS: readonly string[] = ['authorization', 'cookie', 'set-cookie', 'x-api-key'];

/** A case-insensitive token (RFC 9110, 5.6.2). */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const RESERVED = new Set(RESERVED_HEADERS);
const CREDENTIALS = new Set(CREDENTIAL_HEADERS);

/** Returns true if an endpoint may set the header, i.e. its name is valid and not reserved. */
export function mayEndpointSet(name: string): boolean {
  const lower = name.toLowerCase();
  return (
    TOKEN.test(lower) && !RESERVED.has(lower) && !RESERVED_HEADER_PREFIXES.some(prefix => lower.startsWith(prefix))
  );
}

/**
 * Returns true if a header from the producer's request may be forwarded. Same rules as for endpoints, except that
 * credentials aren't allowed either.
 */
export function mayForward(name: string): boolean {
  return mayEndpointSet(name) && !CREDENTIALS.has(name.toLowerCase());
}

/** Returns the schema for a header name (RFC 9110 token) of at most 128 characters. */
export function headerName(): z.ZodString {
  return z.string().min(1).max(128).regex(TOKEN);
}

/**
 * Returns the schema for a header name that isn't in `refused` and doesn't have a reserved prefix. Must match the rule
 * implemented by `holds`.
 */
function nameOutside(refused: readonly string[], holds: (name: string) => boolean, message: string): z.ZodString {
  const list = refused.map(name => `'${name}'`).join(', ');
  const prefixes = RESERVED_HEADER_PREFIXES.map(prefix => `!self.lowerAscii().startsWith('${prefix}')`);
  const rule = [`!(self.lowerAscii() in [${list}])`, ...prefixes].join(' && ');
  return withRule(headerName(), { rule, message, holds });
}

/** Returns the schema for a request header that may be forwarded from the producer to partners. */
export function forwardedHeaderName(): z.ZodString {
  return nameOutside(
    [...RESERVED_HEADERS, ...CREDENTIAL_HEADERS],
    mayForward,
    'must not name credentials or a header that Sluice sets: headers of the connection, content-encoding, content-range, content-type, date, traceparent, user-agent, webhook-*, ce-* and x-sluice-*',
  );
}

/**
 * Returns the schema for a header added by a subscription. Unlike above, `authorization` is allowed, since it belongs
 * to the partner.
 */
export function endpointHeaderName(): z.ZodString {
  return nameOutside(
    RESERVED_HEADERS,
    mayEndpointSet,
    'must not name a header that Sluice sets: headers of the connection, content-encoding, content-range, content-type, date, traceparent, user-agent, webhook-*, ce-* and x-sluice-*',
  );
}
