import type { JWTHeader } from 'express-oauth2-jwt-bearer';

/** Public key of an issuer (JWK, RFC 7517), identified by `kid`. */
type PublicKey = NonNullable<JWTHeader['jwk']> & { readonly kid: string };

/** KeySet contains an issuer's keys. */
export interface KeySet {
  readonly keys: PublicKey[];
}

/** Limits for reading issuer documents. */
export interface DocumentLimits {
  /** The timeout in milliseconds for reading both documents. */
  readonly timeoutMs: number;
  /** The maximum size of each document, in bytes. */
  readonly maxBytes: number;
}

/**
 * Reads the issuer metadata (OpenID Connect Discovery, section 4) and returns the key set it refers to. The function
 * does not follow redirects. Only public keys with a `kid` will be returned, of which there
 * is at least one.
 *
 * @throws Error on timeout, or if a document is invalid
 */
export async function readKeySet(issuer: string, limits: DocumentLimits): Promise<KeySet> {
  const signal = AbortSignal.timeout(limits.timeoutMs);
  const metadata = await readDocument(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, signal, limits);
  // Issuer in the metadata must match the requested one (section 4.3).
  if (metadata['issuer'] !== issuer) {
    throw new Error(`the metadata contains a different issuer: ${JSON.stringify(metadata['issuer'])?.slice(0, 500)}`);
  }
  const { keys } = await readDocument(checkKeysUrl(issuer, metadata['jwks_uri']), signal, limits);
  if (!Array.isArray(keys)) throw new Error('the key set does not contain any keys');
  const usable = keys.filter(isPublicKey);
  // An issuer that is starting or broken may publish an empty set. All of its tokens would be refused as forged.
  if (usable.length === 0) throw new Error('the key set does not contain any public keys with a kid');
  return { keys: usable };
}

/** Returns the URL of the key set. Must use https unless the issuer itself uses http. */
function checkKeysUrl(issuer: string, url: unknown): string {
  if (typeof url !== 'string' || !URL.canParse(url)) throw new Error('the metadata does not contain jwks_uri');
  const { protocol } = new URL(url);
  if (protocol !== 'https:' && protocol !== new URL(issuer).protocol) throw new Error('jwks_uri does not use https');
  return url;
}

async function readDocument(
  url: string,
  signal: AbortSignal,
  { maxBytes }: DocumentLimits,
): Promise<Record<string, unknown>> {
  const answer = await fetch(url, { signal, redirect: 'error', headers: { accept: 'application/json' } });
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of answer.body ?? []) {
    bytes += chunk.length;
    // Throwing ends the loop, so the body is cancelled and the connection closed.
    if (bytes > maxBytes) throw new Error(`${url} is larger than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  if (answer.status !== 200) throw new Error(`${url} returned status ${answer.status}`);
  const document: unknown = JSON.parse(Buffer.concat(chunks).toString());
  if (typeof document !== 'object' || document === null) throw new Error(`${url} did not return a JSON object`);
  return document as Record<string, unknown>;
}

/**
 * Returns true if this is a public key. Symmetric and private keys should never appear in a published set, so we ignore
 * them.
 */
function isPublicKey(key: unknown): key is PublicKey {
  if (typeof key !== 'object' || key === null) return false;
  const { kty, kid, d } = key as Record<string, unknown>;
  return typeof kid === 'string' && d === undefined && ['RSA', 'EC', 'OKP'].includes(kty as string);
}
