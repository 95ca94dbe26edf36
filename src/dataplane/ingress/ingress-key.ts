import type { IncomingHttpHeaders } from 'node:http';

/** Longer than any key we issue. Values exceeding this limit are not hashed. */
const KEY_MAX_LENGTH = 512;
const BEARER = /^Bearer +(\S+)$/i;

/**
 * Returns the request key. The key is read from `Authorization: Bearer <key>` or, if that is not set, from `x-api-key`.
 * If neither of them exists, this returns undefined.
 */
export function readIngressKey(headers: IncomingHttpHeaders): string | undefined {
  const { authorization } = headers;
  const bearer = authorization === undefined ? undefined : BEARER.exec(authorization)?.[1];
  const key = bearer ?? headers['x-api-key'];
  return typeof key === 'string' && key !== '' && key.length <= KEY_MAX_LENGTH ? key : undefined;
}
