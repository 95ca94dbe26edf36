import type { IncomingHttpHeaders } from 'node:http';

/** Longer than any key we issue. Values exceeding this limit are not hashed. */
const KEY_MAX_LENGTH = 512;
const BEARER = /^Bearer +(\S+)$/i;

/**
 * Returns the key of a request, taken from `Authorization: Bearer <key>` or, if that is not set, from `x-api-key`.
 * Returns undefined if neither is present.
 */
export function readIngressKey(headers: IncomingHttpHeaders): string | undefined {
  const { authorization } = headers;
  const bearer = authorization === undefined ? undefined : BEARER.exec(authorization)?.[1];
  const key = bearer ?? headers['x-api-key'];
  return typeof key === 'string' && key !== '' && key.length <= KEY_MAX_LENGTH ? key : undefined;
}
