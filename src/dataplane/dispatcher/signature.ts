import { createHmac, createSecretKey } from 'node:crypto';

/** Returns the `webhook-signature` value for an event. */
export type Sign = (id: string, timestampSeconds: number, body: Uint8Array) => string;

/**
 * Creates a signer as defined by Standard Webhooks. Signatures have the form `v1,` plus the base64 HMAC-SHA-256 of
 * `<id>.<timestamp>.<body>`, with one space-separated signature per key. The body is not decoded. Id and timestamp must
 * match those sent in the headers. Create one signer per endpoint: an HMAC over 1 KiB takes 2 µs with a key object,
 * compared to 11 µs when starting from bytes.
 */
export function createSigner(keys: readonly Uint8Array[]): Sign {
  const secrets = keys.map(key => createSecretKey(key));
  return (id, timestampSeconds, body) => {
    const prefix = `${id}.${timestampSeconds}.`;
    let value = '';
    for (const secret of secrets) {
      const signature = createHmac('sha256', secret).update(prefix, 'latin1').update(body).digest('base64');
      value += value === '' ? `v1,${signature}` : ` v1,${signature}`;
    }
    return value;
  };
}
