/**
 * The credentials in the Authorization header. The kind is `none` if the header is missing or uses another scheme. It
 * is `ambiguous` if the header is sent more than once, or contains more than one word after the scheme. It is `bearer`
 * if there is exactly one word, which may be empty or may not be a token.
 */
type Credentials =
  | { readonly kind: 'none' }
  | { readonly kind: 'ambiguous' }
  | { readonly kind: 'bearer'; readonly token: string };

/**
 * Reads the credentials from Node's `rawHeaders`, which contain names and values in turn. Node's `headers` are not used
 * because they only contain the first Authorization header. A proxy might have checked another one.
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

/** A signed JWT (JWS compact serialization, RFC 7515) that was decoded but not verified. */
export interface UnverifiedToken {
  readonly header: Readonly<Record<string, unknown>>;
  readonly claims: Readonly<Record<string, unknown>>;
}

/**
 * Decodes a token and returns undefined if it is malformed. This is stricter than the verifying library. The token must
 * have three parts in canonical base64url without padding, so that there is only one spelling for each token. The
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
