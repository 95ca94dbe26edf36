import { createCipheriv, createDecipheriv, createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';

const PREFIX = 's1.';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Sealed text that cannot be opened. It has a fixed reason code, and never contains key, plaintext or ciphertext. */
export class SealError extends Error {
  readonly code: 'malformed' | 'wrong_key_or_context';

  constructor(code: SealError['code']) {
    super(code === 'malformed' ? 'not a sealed value' : 'sealed with another key or for another context');
    this.name = 'SealError';
    this.code = code;
  }
}

/** Keys for sealing. Derive them once and keep them: HKDF costs more than a seal. */
export interface SealKeys {
  readonly encryption: Uint8Array;
  readonly nonce: Uint8Array;
}

function deriveKey(rootKey: Uint8Array, context: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', rootKey, '', context, 32));
}

/** Derives the keys for {@link seal} and {@link open} by HKDF-SHA-256 (RFC 5869), each with its own context string. */
export function deriveSealKeys(rootKey: Uint8Array): SealKeys {
  if (rootKey.length < 32) throw new RangeError('root key must have 32 bytes or more');
  return {
    encryption: deriveKey(rootKey, 'sluice seal v1 encryption'),
    nonce: deriveKey(rootKey, 'sluice seal v1 nonce'),
  };
}

/**
 * Returns the nonce: a MAC of all sealed input (as in AES-GCM-SIV, RFC 8452). Equal input seals to equal text, so re-
 * applying an endpoint writes nothing to Redis. A nonce repeats only with its plaintext, or by a collision of 96 bits.
 * The length separates (aad, plaintext) pairs that join to the same bytes.
 */
function nonceOf(keys: SealKeys, aad: Buffer, plaintext: Uint8Array): Buffer {
  const aadLength = Buffer.allocUnsafe(4);
  aadLength.writeUInt32BE(aad.length);
  const mac = createHmac('sha256', keys.nonce).update(aadLength).update(aad).update(plaintext).digest();
  return mac.subarray(0, NONCE_BYTES);
}

/**
 * Seals `plaintext` with AES-256-GCM; the same input gives the same text.
 *
 * @param aad context of the value (say, `<subscription id>/endpoint`): it opens in no other context
 * @returns `s1.` and base64url of nonce (12 bytes), ciphertext, tag (16 bytes)
 */
export function seal(keys: SealKeys, aad: string, plaintext: string | Uint8Array): string {
  const aadBytes = Buffer.from(aad, 'utf8');
  const plain = typeof plaintext === 'string' ? Buffer.from(plaintext, 'utf8') : plaintext;
  const nonce = nonceOf(keys, aadBytes, plain);
  const cipher = createCipheriv('aes-256-gcm', keys.encryption, nonce);
  cipher.setAAD(aadBytes);
  const body = Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
  return PREFIX + body.toString('base64url');
}

/** Opens text of {@link seal} under the same keys and `aad`. @throws SealError otherwise */
export function open(keys: SealKeys, aad: string, sealed: string): Buffer {
  const encoded = sealed.startsWith(PREFIX) ? sealed.slice(PREFIX.length) : undefined;
  const body = encoded === undefined ? undefined : Buffer.from(encoded, 'base64url');
  // Buffer skips characters that are not base64url; encoding again reveals that.
  if (body === undefined || body.length < NONCE_BYTES + TAG_BYTES || body.toString('base64url') !== encoded) {
    throw new SealError('malformed');
  }
  const aadBytes = Buffer.from(aad, 'utf8');
  const nonce = body.subarray(0, NONCE_BYTES);
  const decipher = createDecipheriv('aes-256-gcm', keys.encryption, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(aadBytes);
  decipher.setAuthTag(body.subarray(body.length - TAG_BYTES));
  const ciphertext = body.subarray(NONCE_BYTES, body.length - TAG_BYTES);
  let plain: Buffer;
  try {
    plain = Buffer.concat([decipher.update(ciphertext), decipher.final()]);
  } catch {
    // OpenSSL's error has no more information, and a cause might one day contain input.
    throw new SealError('wrong_key_or_context');
  }
  if (!timingSafeEqual(nonceOf(keys, aadBytes, plain), nonce)) throw new SealError('wrong_key_or_context');
  return plain;
}
