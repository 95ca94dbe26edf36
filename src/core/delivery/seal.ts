import { createCipheriv, createDecipheriv, createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';

const PREFIX = 's1.';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * An error for text that cannot be decrypted. It contains a fixed reason code and does not contain the key, the
 * plaintext or the ciphertext.
 */
export class SealError extends Error {
  readonly code: 'malformed' | 'wrong_key_or_context';

  constructor(code: SealError['code']) {
    super(code === 'malformed' ? 'not a sealed value' : 'sealed with another key or for another context');
    this.name = 'SealError';
    this.code = code;
  }
}

/** The keys for encryption. You should derive them once and keep them, because HKDF is slower than encryption. */
export interface SealKeys {
  readonly encryption: Uint8Array;
  readonly nonce: Uint8Array;
}

function deriveKey(rootKey: Uint8Array, context: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', rootKey, '', context, 32));
}

/**
 * Derives the keys for {@link seal} and {@link open} with HKDF-SHA-256 (RFC 5869). Each key uses a separate context
 * string.
 */
export function deriveSealKeys(rootKey: Uint8Array): SealKeys {
  if (rootKey.length < 32) throw new RangeError('root key must have 32 bytes or more');
  return {
    encryption: deriveKey(rootKey, 'sluice seal v1 encryption'),
    nonce: deriveKey(rootKey, 'sluice seal v1 nonce'),
  };
}

/**
 * Returns the nonce, which is a MAC of all encrypted input (as in AES-GCM-SIV, RFC 8452). The same input always returns
 * the same text, so applying an endpoint again does not write to Redis. Two different plaintexts only have the same
 * nonce if there is a collision of 96 bits. The length is included to distinguish pairs of aad and plaintext that
 * consist of the same bytes.
 */
function nonceOf(keys: SealKeys, aad: Buffer, plaintext: Uint8Array): Buffer {
  const aadLength = Buffer.allocUnsafe(4);
  aadLength.writeUInt32BE(aad.length);
  const mac = createHmac('sha256', keys.nonce).update(aadLength).update(aad).update(plaintext).digest();
  return mac.subarray(0, NONCE_BYTES);
}

/**
 * Encrypts `plaintext` with AES-256-GCM. The same input always returns the same text.
 * @param aad the context of the value, such as `<subscription id>/endpoint`. The same context is required for
 * decryption
 * @returns `s1.` and the base64url encoding of the nonce (12 bytes), the ciphertext and the tag (16 bytes)
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

/** Decrypts the text of {@link seal} with the same keys and `aad`. @throws SealError if the text is not valid */
export function open(keys: SealKeys, aad: string, sealed: string): Buffer {
  const encoded = sealed.startsWith(PREFIX) ? sealed.slice(PREFIX.length) : undefined;
  const body = encoded === undefined ? undefined : Buffer.from(encoded, 'base64url');
  // Buffer ignores characters that are not base64url. The text is encoded again to detect them.
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
    // The OpenSSL error does not contain additional information. It is not used as the cause because it could contain
    // input.
    throw new SealError('wrong_key_or_context');
  }
  if (!timingSafeEqual(nonceOf(keys, aadBytes, plain), nonce)) throw new SealError('wrong_key_or_context');
  return plain;
}
