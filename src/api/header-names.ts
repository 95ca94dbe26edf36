import { z } from 'zod';
import { withPattern, withRule } from './rules.ts';

/**
 * Headers that are reserved for HTTP, for the dispatcher, or for one of its protocols. Endpoints and events can't set
 * these headers.
 */
export const RESERVED_HEADERS: readonly string[] = [
  // Used for framing and connections (RFC 9110, 7.6.1; RFC 9112). If one of these headers could be set, it would be
  // possible to split the request.
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
  // Receivers would decode the body, or treat it as a part of a body. Sluice sends the whole body as it is.
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

/**
 * Headers of the producer's request that ingress never reads, even if a stream lists them. These headers contain
 * credentials or belong to a single connection.
 */
export const UNREAD_HEADERS: readonly string[] = [
  ...CREDENTIAL_HEADERS,
  'proxy-authorization',
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
  'host',
  'content-length',
];

/** A case-insensitive token (RFC 9110, 5.6.2). */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const RESERVED = new Set(RESERVED_HEADERS);
const CREDENTIALS = new Set(CREDENTIAL_HEADERS);
const UNREAD = new Set(UNREAD_HEADERS);

/** Returns true if ingress never reads this header of a request. Not case-sensitive. */
export const isUnread = (name: string): boolean => UNREAD.has(name.toLowerCase());

/** Returns true if an endpoint is allowed to set this header. The name must be valid and must not be reserved. */
export function mayEndpointSet(name: string): boolean {
  const lower = name.toLowerCase();
  return (
    TOKEN.test(lower) && !RESERVED.has(lower) && !RESERVED_HEADER_PREFIXES.some(prefix => lower.startsWith(prefix))
  );
}

/**
 * Returns true if we are allowed to forward this header from the producer's request. The rules are the same as for
 * endpoints, but credentials are not allowed.
 */
export function mayForward(name: string): boolean {
  return mayEndpointSet(name) && !CREDENTIALS.has(name.toLowerCase());
}

/**
 * Returns the schema for the name of a header (a token as defined in RFC 9110), which can have at most 128 characters.
 */
export function headerName(): z.ZodString {
  return withPattern(z.string().min(1).max(128), TOKEN, 'must be a header name such as x-api-key');
}

/** Returns the CEL rule for a name that is not in the list. */
const notIn = (names: readonly string[]) => `!(self.lowerAscii() in [${names.map(name => `'${name}'`).join(', ')}])`;

/** Returns the schema for a request header in which ingress looks for the type, group key, or id of an event. */
export function readHeaderName(): z.ZodString {
  return withRule(headerName(), {
    rule: notIn(UNREAD_HEADERS),
    message: 'must not name credentials or a header of the connection, which ingress never reads',
    holds: name => !isUnread(name),
  });
}

/**
 * Returns the schema for the name of a header that is not in `refused` and does not start with a reserved prefix. Must
 * match the rule in `holds`.
 */
function nameOutside(refused: readonly string[], holds: (name: string) => boolean, message: string): z.ZodString {
  const prefixes = RESERVED_HEADER_PREFIXES.map(prefix => `!self.lowerAscii().startsWith('${prefix}')`);
  const rule = [notIn(refused), ...prefixes].join(' && ');
  return withRule(headerName(), { rule, message, holds });
}

/** Returns the schema for a request header that can be forwarded from the producer to its partners. */
export function forwardedHeaderName(): z.ZodString {
  return nameOutside(
    [...RESERVED_HEADERS, ...CREDENTIAL_HEADERS],
    mayForward,
    'must not name credentials or a header that Sluice sets: headers of the connection, content-encoding, content-range, content-type, date, traceparent, user-agent, webhook-*, ce-* and x-sluice-*',
  );
}

/**
 * Returns the schema for a header that is added by a subscription. Unlike above, `authorization` is allowed, since it
 * belongs to the partner.
 */
export function endpointHeaderName(): z.ZodString {
  return nameOutside(
    RESERVED_HEADERS,
    mayEndpointSet,
    'must not name a header that Sluice sets: headers of the connection, content-encoding, content-range, content-type, date, traceparent, user-agent, webhook-*, ce-* and x-sluice-*',
  );
}
