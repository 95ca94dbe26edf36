import { describe, expect, test } from 'vitest';
import { CONTEXT_HEADER_DEFAULTS } from './context-headers.ts';
import {
  CREDENTIAL_HEADERS,
  endpointHeaderName,
  forwardedHeaderName,
  mayEndpointSet,
  mayForward,
  RESERVED_HEADERS,
  readHeaderName,
  UNREAD_HEADERS,
} from './header-names.ts';

describe('header names', () => {
  test.each([...RESERVED_HEADERS, 'Host', 'CONTENT-LENGTH', 'webhook-id', 'Webhook-X', 'ce-id', 'CE-anything'])(
    '%s is reserved',
    name => {
      expect(mayEndpointSet(name)).toBe(false);
      expect(mayForward(name)).toBe(false);
    },
  );

  test.each(['Content-Encoding', 'content-range'])(
    '%s is reserved because it could describe the body incorrectly',
    name => {
      expect(mayEndpointSet(name)).toBe(false);
      expect(mayForward(name)).toBe(false);
      expect(endpointHeaderName().safeParse(name).success).toBe(false);
    },
  );

  test.each(['', 'a b', 'a:b', 'a\r\nb', 'ä', 'x\0'])('%j is not a valid name', name => {
    expect(mayEndpointSet(name)).toBe(false);
  });

  test('an endpoint can set its own credentials, and the credentials of the producer are not forwarded', () => {
    for (const name of ['Authorization', 'x-api-key', 'cookie']) {
      expect(mayEndpointSet(name)).toBe(true);
      expect(mayForward(name)).toBe(false);
    }
    expect(mayForward('X-Request-Id')).toBe(true);
    expect(mayForward('tracestate')).toBe(true);
  });

  test('the schemas refuse the headers that the dispatcher would drop, and accept all others', () => {
    const some = ['Authorization', 'x-request-id', 'Ce-Id', 'x-sluice-a', 'Webhook-Id', 'User-Agent', 'tracestate'];
    for (const name of [...RESERVED_HEADERS, ...CREDENTIAL_HEADERS, ...some]) {
      expect(endpointHeaderName().safeParse(name).success).toBe(mayEndpointSet(name));
      expect(forwardedHeaderName().safeParse(name).success).toBe(mayForward(name));
    }
  });

  test('the schema for a header that is read only refuses the headers that ingress never reads', () => {
    for (const name of UNREAD_HEADERS) {
      expect(readHeaderName().safeParse(name).success).toBe(false);
      expect(readHeaderName().safeParse(name.toUpperCase()).success).toBe(false);
    }
    const read = Object.values(CONTEXT_HEADER_DEFAULTS).flat();
    for (const name of [...read, 'content-type', 'X-Customer'])
      expect(readHeaderName().safeParse(name).success).toBe(true);
  });
});
