import type { IncomingHttpHeaders } from 'node:http';

/** Longer than any key that is ever issued; more is not worth hashing. */
const KEY_MAX_LENGTH = 512;
const BEARER = /^Bearer +(\S+)$/i;

/** The key of a request: `Authorization: Bearer <key>`, else `x-api-key`; undefined when there is none. */
export function readIngressKey(headers: IncomingHttpHeaders): string | undefined {
  const { authorization } = headers;
  const bearer = authorization === undefined ? undefined : BEARER.exec(authorization)?.[1];
  const key = bearer ?? headers['x-api-key'];
  return typeof key === 'string' && key !== '' && key.length <= KEY_MAX_LENGTH ? key : undefined;
}
