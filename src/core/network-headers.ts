/** Header names that the dispatcher, HTTP or the protocols it speaks own: no endpoint and no event may set them. */
export const RESERVED_HEADERS: readonly string[] = [
  // Framing and connection (RFC 9110, 7.6.1; RFC 9112): setting one would let a value break the request apart.
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
  // What a delivery states about itself.
  'content-type',
  'date',
  'traceparent',
  'user-agent',
];

/** Reserved by their beginning: Standard Webhooks, CloudEvents, and our own. */
export const RESERVED_HEADER_PREFIXES: readonly string[] = ['webhook-', 'ce-', 'x-sluice-'];

/** Credentials of the producer's request to ingress: passing them on would hand the producer's keys to a partner. */
export const CREDENTIAL_HEADERS: readonly string[] = ['authorization', 'cookie', 'set-cookie', 'x-api-key'];

const RESERVED = new Set(RESERVED_HEADERS);
const CREDENTIALS = new Set(CREDENTIAL_HEADERS);
const TOKEN = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Whether an endpoint may set the header by itself: a token (RFC 9110, 5.6.2), in any case, and not reserved. */
export function mayEndpointSet(name: string): boolean {
  const lower = name.toLowerCase();
  return (
    TOKEN.test(lower) && !RESERVED.has(lower) && !RESERVED_HEADER_PREFIXES.some(prefix => lower.startsWith(prefix))
  );
}

/** Whether a header of the producer's request may be passed on to receivers: as for an endpoint, and no credentials. */
export function mayForward(name: string): boolean {
  return mayEndpointSet(name) && !CREDENTIALS.has(name.toLowerCase());
}

/** Whether the text can stand in a header field as it is (RFC 9110, 5.5), one byte a character. */
export function isHeaderValue(value: string): boolean {
  return FIELD_VALUE.test(value);
}
