import { createHmac, createPrivateKey, createPublicKey, sign } from 'node:crypto';
import type { JWK } from 'jose';

/** Encodes bytes unchanged, text as UTF-8, and all other values as JSON. */
export type Part = Uint8Array | string | object;

export function encodePart(part: Part): string {
  if (part instanceof Uint8Array) return Buffer.from(part).toString('base64url');
  return Buffer.from(typeof part === 'string' ? part : JSON.stringify(part)).toString('base64url');
}

/**
 * Creates a compact JWS from any two parts, valid or not. It is signed as RS256 (or by `hash`) with a private RSA key.
 */
export function signParts(key: JWK, header: Part, claims: Part, hash = 'sha256'): string {
  const input = `${encodePart(header)}.${encodePart(claims)}`;
  return `${input}.${sign(hash, Buffer.from(input), privateKey(key)).toString('base64url')}`;
}

/** Creates the same token with a MAC using `secret`. */
export function macParts(secret: string | Buffer, header: Part, claims: Part, hash = 'sha256'): string {
  const input = `${encodePart(header)}.${encodePart(claims)}`;
  return `${input}.${createHmac(hash, secret).update(input).digest('base64url')}`;
}

/** Returns the public part of a key, which an attacker could use as a MAC secret. */
export function publicPem(key: JWK): string {
  return createPublicKey(privateKey(key)).export({ type: 'spki', format: 'pem' }).toString();
}

export function publicJwk(key: JWK): JWK {
  return createPublicKey(privateKey(key)).export({ format: 'jwk' }) as JWK;
}

function privateKey(key: JWK) {
  return createPrivateKey({ key: key as Record<string, unknown>, format: 'jwk' });
}
