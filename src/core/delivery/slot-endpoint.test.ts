import { expect, test } from 'vitest';
import { openEndpoint } from './endpoint-config.ts';
import { deriveSealKeys } from './seal.ts';
import { parseSlotEndpoint, sealSlotEndpoint } from './slot-endpoint.ts';

const keys = deriveSealKeys(Buffer.alloc(32, 7));
const config = {
  url: 'https://example.com/a?b=c',
  timeoutMs: 1_000,
  retryMs: [5_000],
  headers: {},
  salt: 'a-salt',
  secretVersion: 1,
};
const owner = { subscription: 'sub_a', inc: 'inc1' };

test('contains its owner, hides all other data, and can only be decrypted for this owner', () => {
  const text = sealSlotEndpoint(keys, owner, config);
  expect(text).not.toContain('example.com');
  const parsed = parseSlotEndpoint(text);
  expect(parsed).toMatchObject(owner);
  const sealed = parsed?.sealed ?? '';
  expect(openEndpoint(keys, 'sub_a', sealed)).toEqual(config);
  expect(() => openEndpoint(keys, 'sub_b', sealed)).toThrow();
});

test.each(['', 'sub_a', 'sub_a.inc1', 'sub_a sealed', '.inc1 sealed', 'sub_a.inc1 sealed more'])(
  '%j is invalid',
  text => {
    expect(parseSlotEndpoint(text)).toBeUndefined();
  },
);
