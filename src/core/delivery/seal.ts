import { createCipheriv, createDecipheriv, createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';

const PREFIX = 's1.';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Thrown for text that can't be decrypted. Only includes a fixed reason code, never the key, plaintext, or ciphertext.
 */
export class SealError extends Error {
  readonly code: 'malformed' | 'wrong_key_or_context';

  constructor(code: SealError['code']) {
    super(code === 'malformed' ? 'not a sealed value' : 'sealed with another key or for another context');
    this.name = 'SealError';
    this.code = code;
  }
}

/** Encryption keys. These should be derived once and then kept, since HKDF is slower than encryption. */
export interface SealKeys {
  readonly encryption: Uint8Array;
  readonly nonce: Uint8Array;
}

function deriveKey(rootKey: Uint8Array, context: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', rootKey, '', context, 32));
}

/**
 * Derives the keys used by {@link seal} and {@link open} with HKDF-SHA-256 (RFC 5869), giving each its own context
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
 * Returns the nonce, a MAC over everything that is encrypted (as in AES-GCM-SIV, RFC 8452). The same input therefore
 * always results in the same text, and applying an endpoint again doesn't write to Redis. For two different plaintexts
 * to share a nonce, there would have to be a collision of 96 bits. We include the length to tell apart pairs of aad and
 * plaintext made up of the same bytes.
 */
function nonceOf(keys: SealKeys, aad: Buffer, plaintext: Uint8Array): Buffer {
  const aadLength = Buffer.allocUnsafe(4);
  aadLength.writeUInt32BE(aad.length);
  const mac = createHmac('sha256', keys.nonce).update(aadLength).update(aad).update(plaintext).digest();
  return mac.subarray(0, NONCE_BYTES);
}

/**
 * Encrypts `plaintext` using AES-256-GCM. Deterministic: the same input always results in the same text.
 * @param aad context of the value, such as `<subscription id>/endpoint`. Must be the same for decryption
 * @returns `s1.`, followed by the base64url of nonce (12 bytes), ciphertext, and tag (16 bytes)
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

/** Decrypts text produced by {@link seal} with the same keys and `aad`. @throws SealError if the text is invalid */
export function open(keys: SealKeys, aad: string, sealed: string): Buffer {
  const encoded = sealed.startsWith(PREFIX) ? sealed.slice(PREFIX.length) : undefined;
  const body = encoded === undefined ? undefined : Buffer.from(encoded, 'base64url');
  // Buffer silently skips characters that aren't base64url, so we encode the result again to detect them.
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
    // OpenSSL's error doesn't add anything, and could contain input. Don't use it as the cause.
    throw new SealError('wrong_key_or_context');
  }
  if (!timingSafeEqual(nonceOf(keys, aadBytes, plain), nonce)) throw new SealError('wrong_key_or_context');
  return plain;
}
