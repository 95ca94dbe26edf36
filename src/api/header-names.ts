import { z } from 'zod';
import { withRule } from './rules.ts';

/** Headers that belong to HTTP, the dispatcher or its protocols. No endpoint and no event may set them. */
export const RESERVED_HEADERS: readonly string[] = [
  // Framing and connection (RFC 9110, 7.6.1; RFC 9112): setting one could split the request.
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
  // Set by the dispatcher for each delivery.
  'content-type',
  'date',
  'traceparent',
  'user-agent',
];

/** Reserved prefixes: Standard Webhooks, CloudEvents, and our own. */
export const RESERVED_HEADER_PREFIXES: readonly string[] = ['webhook-', 'ce-', 'x-sluice-'];

/** Credentials in the producer's request to ingress. Forwarding them would give a partner the producer's keys. */
export const CREDENTIAL_HEADERS: readonly string[] = ['authorization', 'cookie', 'set-cookie', 'x-api-key'];

/** A token (RFC 9110, 5.6.2), in any case. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const RESERVED = new Set(RESERVED_HEADERS);
const CREDENTIALS = new Set(CREDENTIAL_HEADERS);

/** Returns whether an endpoint may set the header: a valid name, in any case, that is not reserved. */
export function mayEndpointSet(name: string): boolean {
  const lower = name.toLowerCase();
  return (
    TOKEN.test(lower) && !RESERVED.has(lower) && !RESERVED_HEADER_PREFIXES.some(prefix => lower.startsWith(prefix))
  );
}

/** Returns whether a header of the producer's request may be forwarded: as for an endpoint, and no credentials. */
export function mayForward(name: string): boolean {
  return mayEndpointSet(name) && !CREDENTIALS.has(name.toLowerCase());
}

/** Returns the schema of a header name (RFC 9110 token), in any case, at most 128 characters. */
export function headerName(): z.ZodString {
  return z.string().min(1).max(128).regex(TOKEN);
}

/** Returns the schema of a header name outside `refused` and the reserved prefixes. `holds` is the same rule. */
function nameOutside(refused: readonly string[], holds: (name: string) => boolean, message: string): z.ZodString {
  const list = refused.map(name => `'${name}'`).join(', ');
  const prefixes = RESERVED_HEADER_PREFIXES.map(prefix => `!self.lowerAscii().startsWith('${prefix}')`);
  const rule = [`!(self.lowerAscii() in [${list}])`, ...prefixes].join(' && ');
  return withRule(headerName(), { rule, message, holds });
}

/** Returns the schema of a request header that may be forwarded from the producer to partners. */
export function forwardedHeaderName(): z.ZodString {
  return nameOutside(
    [...RESERVED_HEADERS, ...CREDENTIAL_HEADERS],
    mayForward,
    'must not name credentials or a header that Sluice sets: headers of the connection, content-type, date, traceparent, user-agent, webhook-*, ce-* and x-sluice-*',
  );
}

/** Returns the schema of a header that a subscription adds. `authorization` is allowed: it is the partner's own. */
export function endpointHeaderName(): z.ZodString {
  return nameOutside(
    RESERVED_HEADERS,
    mayEndpointSet,
    'must not name a header that Sluice sets: headers of the connection, content-type, date, traceparent, user-agent, webhook-*, ce-* and x-sluice-*',
  );
}
