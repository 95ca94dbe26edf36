import { z } from 'zod';
import { withRule } from './rules.ts';

/**
 * Headers that are reserved for HTTP, for the dispatcher or for its protocols. Endpoints and events cannot set them.
 */
export const RESERVED_HEADERS: readonly string[] = [
  // Headers for framing and connections (RFC 9110, 7.6.1; RFC 9112). Setting one of them could split the request.
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
  // Headers that the dispatcher sets for each delivery.
  'content-type',
  'date',
  'traceparent',
  'user-agent',
];

/** Reserved prefixes of Standard Webhooks, CloudEvents and Sluice. */
export const RESERVED_HEADER_PREFIXES: readonly string[] = ['webhook-', 'ce-', 'x-sluice-'];

/**
 * Credentials in the producer's request to ingress. They are not forwarded because partners would receive the
 * producer's keys.
 */
export const CREDENTIAL_HEADERS: readonly string[] = ['authorization', 'cookie', 'set-cookie', 'x-api-key'];

/** A token (RFC 9110, 5.6.2), which is not case-sensitive. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const RESERVED = new Set(RESERVED_HEADERS);
const CREDENTIALS = new Set(CREDENTIAL_HEADERS);

/** Returns whether an endpoint can set the header. The name must be valid and must not be reserved. */
export function mayEndpointSet(name: string): boolean {
  const lower = name.toLowerCase();
  return (
    TOKEN.test(lower) && !RESERVED.has(lower) && !RESERVED_HEADER_PREFIXES.some(prefix => lower.startsWith(prefix))
  );
}

/**
 * Returns whether a header of the producer's request can be forwarded. The rules for endpoints apply, and credentials
 * are not allowed.
 */
export function mayForward(name: string): boolean {
  return mayEndpointSet(name) && !CREDENTIALS.has(name.toLowerCase());
}

/** Returns the schema of a header name (RFC 9110 token) with at most 128 characters. */
export function headerName(): z.ZodString {
  return z.string().min(1).max(128).regex(TOKEN);
}

/**
 * Returns the schema of a header name that is not in `refused` and does not have a reserved prefix. The function
 * `holds` implements the same rule.
 */
function nameOutside(refused: readonly string[], holds: (name: string) => boolean, message: string): z.ZodString {
  const list = refused.map(name => `'${name}'`).join(', ');
  const prefixes = RESERVED_HEADER_PREFIXES.map(prefix => `!self.lowerAscii().startsWith('${prefix}')`);
  const rule = [`!(self.lowerAscii() in [${list}])`, ...prefixes].join(' && ');
  return withRule(headerName(), { rule, message, holds });
}

/** Returns the schema of a request header that can be forwarded from the producer to partners. */
export function forwardedHeaderName(): z.ZodString {
  return nameOutside(
    [...RESERVED_HEADERS, ...CREDENTIAL_HEADERS],
    mayForward,
    'must not name credentials or a header that Sluice sets: headers of the connection, content-type, date, traceparent, user-agent, webhook-*, ce-* and x-sluice-*',
  );
}

/**
 * Returns the schema of a header that a subscription adds. The header `authorization` is allowed because it belongs to
 * the partner.
 */
export function endpointHeaderName(): z.ZodString {
  return nameOutside(
    RESERVED_HEADERS,
    mayEndpointSet,
    'must not name a header that Sluice sets: headers of the connection, content-type, date, traceparent, user-agent, webhook-*, ce-* and x-sluice-*',
  );
}
