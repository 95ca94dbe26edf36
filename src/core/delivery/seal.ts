import { createCipheriv, createDecipheriv, createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { ROOT_KEY_ID_LENGTH, rootKeyId } from './root-key-fingerprint.ts';

/** `s2.`, the id of the root key, and the encrypted bytes. */
const SEALED = new RegExp(`^s2\\.([A-Za-z0-9_-]{${ROOT_KEY_ID_LENGTH}})\\.([A-Za-z0-9_-]+)$`);
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

const MESSAGES = {
  malformed: 'not a sealed value',
  unknown_key: 'sealed with a root key that is not in SLUICE_ROOT_KEY_FILE',
  wrong_key_or_context: 'sealed with another key or for another context',
} as const;

/**
 * Thrown for text that can't be decrypted. Only includes a fixed reason code, never the key, plaintext, or ciphertext.
 */
export class SealError extends Error {
  readonly code: 'malformed' | 'unknown_key' | 'wrong_key_or_context';

  constructor(code: SealError['code']) {
    super(MESSAGES[code]);
    this.name = 'SealError';
    this.code = code;
  }
}

/** Finds the keys to decrypt a value with. */
export interface SealRing {
  /** @param id of the root key */
  readonly find: (id: string) => SealKeys | undefined;
}

/**
 * Encryption keys. Derive the keys once and keep them because HKDF is slower than encryption. Also a ring that only has
 * this root key.
 */
export interface SealKeys extends SealRing {
  /** Id of the root key. */
  readonly id: string;
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
  const keys: SealKeys = {
    id: rootKeyId(rootKey),
    encryption: deriveKey(rootKey, 'sluice seal v1 encryption'),
    nonce: deriveKey(rootKey, 'sluice seal v1 nonce'),
    find: id => (id === keys.id ? keys : undefined),
  };
  return keys;
}

/**
 * Returns the nonce, a MAC over everything that is encrypted (as in AES-GCM-SIV, RFC 8452). As a result, the same input
 * always returns the same text, so applying an endpoint again does not write to Redis. For two different plaintexts to
 * share a nonce, there would have to be a collision of 96 bits. We include the length to tell apart pairs of aad and
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
 * @returns `s2.`, the id of the root key, `.`, and the base64url of nonce (12 bytes), ciphertext, and tag (16 bytes)
 */
export function seal(keys: SealKeys, aad: string, plaintext: string | Uint8Array): string {
  const aadBytes = Buffer.from(aad, 'utf8');
  const plain = typeof plaintext === 'string' ? Buffer.from(plaintext, 'utf8') : plaintext;
  const nonce = nonceOf(keys, aadBytes, plain);
  const cipher = createCipheriv('aes-256-gcm', keys.encryption, nonce);
  cipher.setAAD(aadBytes);
  const body = Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
  return `s2.${keys.id}.${body.toString('base64url')}`;
}

/** Returns the id of the root key used to encrypt a value. Undefined for any other text. */
export function sealedWith(sealed: string): string | undefined {
  return SEALED.exec(sealed)?.[1];
}

/** Decrypts text produced by {@link seal} with the same `aad`. @throws SealError if the text is invalid */
export function open(ring: SealRing, aad: string, sealed: string): Buffer {
  const [, id = '', encoded] = SEALED.exec(sealed) ?? [];
  const body = encoded === undefined ? undefined : Buffer.from(encoded, 'base64url');
  // The same bytes can be spelled in several ways, so we encode the result again to detect them.
  if (body === undefined || body.length < NONCE_BYTES + TAG_BYTES || body.toString('base64url') !== encoded) {
    throw new SealError('malformed');
  }
  const keys = ring.find(id);
  if (keys === undefined) throw new SealError('unknown_key');
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
