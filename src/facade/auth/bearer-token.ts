/**
 * The credentials sent in the Authorization header. `none` means that there is no such header, or that it uses a
 * different scheme. `ambiguous` means that there are several such headers, or several words after the scheme. With
 * exactly one word (which may be empty, or not a token), the kind is `bearer`.
 */
type Credentials =
  | { readonly kind: 'none' }
  | { readonly kind: 'ambiguous' }
  | { readonly kind: 'bearer'; readonly token: string };

/**
 * Reads the credentials from Node's `rawHeaders` (alternating names and values). `headers` can't be used here because
 * it only contains the first Authorization header. A proxy might have checked another one.
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

/** Signed JWT (JWS compact serialization, RFC 7515), decoded but not verified. */
export interface UnverifiedToken {
  readonly header: Readonly<Record<string, unknown>>;
  readonly claims: Readonly<Record<string, unknown>>;
}

/**
 * Decodes a token. Returns undefined if the token is malformed. Stricter than the library used for verification: there
 * must be three parts in canonical base64url without padding, so that each token can only be spelled one way. Both the
 * header and the claims must be JSON objects in valid UTF-8.
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
