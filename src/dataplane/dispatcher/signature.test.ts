import { createHmac, webcrypto } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { keyRingOf } from '../../core/delivery/key-ring.ts';
import { signingKeys, signingSecret } from '../../core/delivery/signing-secret.ts';
import { createSigner } from './signature.ts';

const rootKey = Buffer.alloc(32, 3);
const root = { rootKey, subscriptionId: 'sub_1', salt: 'a-salt' };
const ring = keyRingOf(rootKey);
/** The public verifier only uses the real clock. */
const nowSeconds = Math.floor(Date.now() / 1000);

const headersOf = (signature: string) => ({
  'webhook-id': 'evt_1',
  'webhook-timestamp': String(nowSeconds),
  'webhook-signature': signature,
});

/** After verification, the package parses the body as JSON. An error while parsing does not affect the signature. */
function judge(verifier: Webhook, body: string, signature: string): string {
  try {
    verifier.verify(body, headersOf(signature));
  } catch (error) {
    if (!(error instanceof SyntaxError)) return error instanceof Error ? error.message : 'unknown';
  }
  return 'verified';
}

describe('createSigner', () => {
  test.each(['', '{}', '{"text":"grüße \u{1F600}"}', 'line\r\nline\n', 'x'.repeat(256 * 1024)])(
    'signatures are verified by the public package (%#)',
    body => {
      const sign = createSigner(signingKeys(ring, root, 1, undefined, 0));
      const signature = sign('evt_1', nowSeconds, Buffer.from(body));
      const verifier = new Webhook(signingSecret(root, 1));
      expect(judge(verifier, body, signature)).toBe('verified');
      expect(judge(verifier, `${body} `, signature)).toBe('No matching signature found');
    },
  );

  test('during a rotation, either secret can verify, and an older secret cannot', () => {
    const sign = createSigner(signingKeys(ring, root, 3, 1000, 2000));
    const signature = sign('evt_1', nowSeconds, Buffer.from('{}'));
    expect(signature.split(' ')).toHaveLength(2);
    for (const version of [3, 2]) {
      expect(new Webhook(signingSecret(root, version)).verify('{}', headersOf(signature))).toEqual({});
    }
    const oldest = new Webhook(signingSecret(root, 1));
    expect(() => oldest.verify('{}', headersOf(signature))).toThrow('No matching signature found');
  });

  test('bytes that are not UTF-8 are signed unchanged', async () => {
    const [key = Buffer.alloc(0)] = signingKeys(ring, root, 1, undefined, 0);
    const body = Buffer.from([0xff, 0x00, 0xc3, 0x28, 0xed, 0xa0, 0x80]);
    const signed = Buffer.concat([Buffer.from(`evt_1.${nowSeconds}.`), body]);
    const algorithm = { name: 'HMAC', hash: 'SHA-256' };
    const imported = await webcrypto.subtle.importKey('raw', new Uint8Array(key), algorithm, false, ['sign']);
    const expected = Buffer.from(await webcrypto.subtle.sign('HMAC', imported, new Uint8Array(signed)));
    expect(createSigner([key])('evt_1', nowSeconds, body)).toBe(`v1,${expected.toString('base64')}`);
  });

  test('keys and bodies of every size are signed like createHmac, one after the other', () => {
    for (const keyBytes of [1, 24, 32, 63, 64, 65, 200]) {
      const keys = [Buffer.alloc(keyBytes, 0xa5), Buffer.alloc(keyBytes, 0x5a)];
      const sign = createSigner(keys);
      for (const bodyBytes of [0, 1, 63, 64, 1_024, 17_300, 17_400, 100_000, 5]) {
        const body = Buffer.alloc(bodyBytes, 0xc3);
        const expected = keys.map(
          key => `v1,${createHmac('sha256', key).update('evt_1.7.').update(body).digest('base64')}`,
        );
        expect(sign('evt_1', 7, body), `${keyBytes}, ${bodyBytes}`).toBe(expected.join(' '));
      }
    }
  });
});
