import type { IncomingHttpHeaders } from 'node:http';

/** This limit is longer than any key that is issued. We do not hash values that exceed it. */
const KEY_MAX_LENGTH = 512;
const BEARER = /^Bearer +(\S+)$/i;

/**
 * Returns the key of a request. It is read from `Authorization: Bearer <key>`, or from `x-api-key` if the first is not
 * set. Returns undefined if the request has no key.
 */
export function readIngressKey(headers: IncomingHttpHeaders): string | undefined {
  const { authorization } = headers;
  const bearer = authorization === undefined ? undefined : BEARER.exec(authorization)?.[1];
  const key = bearer ?? headers['x-api-key'];
  return typeof key === 'string' && key !== '' && key.length <= KEY_MAX_LENGTH ? key : undefined;
}
