/**
 * What the Authorization header holds. `none`: no such header, or one of another scheme. `ambiguous`: it is there more
 * than once, or holds more than one word after the scheme. `bearer`: one word, which may be empty or no token at all.
 */
export type Credentials =
  | { readonly kind: 'none' }
  | { readonly kind: 'ambiguous' }
  | { readonly kind: 'bearer'; readonly token: string };

/**
 * Reads the credentials as they were sent: name and value in turn, as Node's `rawHeaders`. Node's `headers` keep the
 * first Authorization of several, so that what a proxy has checked and what is looked at here could differ.
 */
export function readCredentials(rawHeaders: readonly string[]): Credentials {
  const values = rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === 'authorization');
  const [value, ...more] = values;
  if (value === undefined) return { kind: 'none' };
  if (more.length > 0) return { kind: 'ambiguous' };
  const [scheme = '', ...words] = value.split(' ');
  if (scheme.toLowerCase() !== 'bearer') return { kind: 'none' };
  const [token = '', ...rest] = words;
  return rest.length > 0 || token.includes(',') ? { kind: 'ambiguous' } : { kind: 'bearer', token };
}

/** A signed JWT (JWS compact serialization, RFC 7515), decoded; nothing of it is verified. */
export interface UnverifiedToken {
  readonly header: Readonly<Record<string, unknown>>;
  readonly claims: Readonly<Record<string, unknown>>;
}

/**
 * Decodes a token; undefined when it is none. Stricter than the library that verifies: three parts in canonical base64url
 * without padding (so that one token has one spelling), header and claims JSON objects in valid UTF-8.
 */
export function parseToken(token: string): UnverifiedToken | undefined {
  const parts = token.split('.');
  if (parts.length !== 3 || !parts.every(isCanonical)) return undefined;
  const header = decodeObject(parts[0] as string);
  const claims = decodeObject(parts[1] as string);
  return header === undefined || claims === undefined ? undefined : { header, claims };
}

function isCanonical(part: string): boolean {
  return part !== '' && Buffer.from(part, 'base64url').toString('base64url') === part;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function decodeObject(part: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(utf8.decode(Buffer.from(part, 'base64url')));
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}
