import type { JWTHeader } from 'express-oauth2-jwt-bearer';

/** A public key of an issuer (JWK, RFC 7517). `kid` names it. */
type PublicKey = NonNullable<JWTHeader['jwk']> & { readonly kid: string };

/** The keys of an issuer. */
export interface KeySet {
  readonly keys: PublicKey[];
}

/** Limits for reading an issuer's documents. */
export interface DocumentLimits {
  /** Timeout for both documents together, ms. */
  readonly timeoutMs: number;
  /** Maximum size of a document, bytes. */
  readonly maxBytes: number;
}

/**
 * Reads the keys of an issuer: its metadata (OpenID Connect Discovery, section 4) and the key set in it. Does not
 * follow redirects. Keeps only public keys with a `kid`.
 *
 * @throws Error on a timeout or an invalid document
 */
export async function readKeySet(issuer: string, limits: DocumentLimits): Promise<KeySet> {
  const signal = AbortSignal.timeout(limits.timeoutMs);
  const metadata = await readDocument(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, signal, limits);
  // Section 4.3: the metadata must name exactly the issuer that was requested.
  if (metadata['issuer'] !== issuer) throw new Error('the metadata contains a different issuer');
  const { keys } = await readDocument(checkKeysUrl(issuer, metadata['jwks_uri']), signal, limits);
  if (!Array.isArray(keys)) throw new Error('the key set does not contain any keys');
  return { keys: keys.filter(isPublicKey) };
}

/** Returns the URL of the key set. It must use https, unless the issuer itself does not. */
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
    // Leaving the loop cancels the body, and with it the connection.
    if (bytes > maxBytes) throw new Error(`${url} is larger than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  if (answer.status !== 200) throw new Error(`${url} returned status ${answer.status}`);
  const document: unknown = JSON.parse(Buffer.concat(chunks).toString());
  if (typeof document !== 'object' || document === null) throw new Error(`${url} did not return a JSON object`);
  return document as Record<string, unknown>;
}

/** Drops symmetric and private keys: a published set must not contain them. */
function isPublicKey(key: unknown): key is PublicKey {
  if (typeof key !== 'object' || key === null) return false;
  const { kty, kid, d } = key as Record<string, unknown>;
  return typeof kid === 'string' && d === undefined && ['RSA', 'EC', 'OKP'].includes(kty as string);
}
