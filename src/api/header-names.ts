import { z } from 'zod';
import { withRule } from './rules.ts';

// What belongs to one connection (RFC 9110, 7.6.1), what the HTTP client writes itself, and the signature.
const CONNECTION_HEADERS = [
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
] as const;

// What a producer authenticates with at our door, and must never reach a partner.
const CREDENTIAL_HEADERS = ['authorization', 'cookie', 'x-api-key'] as const;

/** Name of an HTTP header (RFC 9110 token), in any case, at most 128 characters. */
export function headerName(): z.ZodString {
  return z
    .string()
    .min(1)
    .max(128)
    .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/);
}

function nameOutside(refused: readonly string[], message: string): z.ZodString {
  const list = refused.map(name => `'${name}'`).join(', ');
  return withRule(headerName(), {
    rule: `!(self.lowerAscii() in [${list}]) && !self.lowerAscii().startsWith('webhook-')`,
    message,
    holds: value => !refused.includes(value.toLowerCase()) && !value.toLowerCase().startsWith('webhook-'),
  });
}

/** Name of a request header that may be passed on from the producer to partners: no credentials, no signature. */
export function forwardedHeaderName(): z.ZodString {
  return nameOutside(
    [...CONNECTION_HEADERS, ...CREDENTIAL_HEADERS],
    'credentials, headers of the connection and webhook-* are never forwarded',
  );
}

/** Name of a header that a subscription adds to its deliveries. `authorization` is fine: it is the partner's own. */
export function endpointHeaderName(): z.ZodString {
  return nameOutside(
    [...CONNECTION_HEADERS, 'content-type'],
    'headers of the connection, content-type and webhook-* are set by the dispatcher',
  );
}
