/**
 * The content of the Authorization header. `none`: no such header, or another scheme. `ambiguous`: the header occurs
 * more than once, or has more than one word after the scheme. `bearer`: one word, which may be empty or not a token.
 */
type Credentials =
  | { readonly kind: 'none' }
  | { readonly kind: 'ambiguous' }
  | { readonly kind: 'bearer'; readonly token: string };

/**
 * Reads the credentials from Node's `rawHeaders` (name and value in turn). Node's `headers` keep only the first of
 * several Authorization headers: a proxy might have checked another one.
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

/** A signed JWT (JWS compact serialization, RFC 7515), decoded but not verified. */
export interface UnverifiedToken {
  readonly header: Readonly<Record<string, unknown>>;
  readonly claims: Readonly<Record<string, unknown>>;
}

/**
 * Decodes a token; undefined if it is malformed. Stricter than the verifying library: three parts in canonical
 * base64url without padding (so a token has one spelling), header and claims JSON objects in valid UTF-8.
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
