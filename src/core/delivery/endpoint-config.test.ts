import { expect, test } from 'vitest';
import { openEndpoint, sealEndpoint } from './endpoint-config.ts';
import { deriveSealKeys, SealError } from './seal.ts';

const keys = deriveSealKeys(new Uint8Array(32).fill(7));
const config = {
  url: 'https://user.example/hook?secret=s3cr3t',
  timeoutMs: 15_000,
  retryMs: [5_000],
  headers: { authorization: 'Bearer x' },
  salt: 'a-salt',
  secretVersion: 2,
  rotatedAtMs: 5,
};

test('only opens a configuration that was sealed for the same subscription', () => {
  const sealed = sealEndpoint(keys, 'sub_a', config);
  expect(openEndpoint(keys, 'sub_a', sealed)).toEqual(config);
  expect(sealed).not.toContain('s3cr3t');
  expect(sealEndpoint(keys, 'sub_a', { ...config })).toBe(sealed);
  expect(() => openEndpoint(keys, 'sub_b', sealed)).toThrow(SealError);
  expect(() => openEndpoint(deriveSealKeys(new Uint8Array(32)), 'sub_a', sealed)).toThrow(SealError);
});
