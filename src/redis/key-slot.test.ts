import { expect, test } from 'vitest';
import { keySlot } from './key-slot.ts';

test.each([
  // As returned by `CLUSTER KEYSLOT` in Redis 7.
  ['123456789', 12_739],
  ['{q:ten_0123456789abcdefghjk:orders:0}:meta', keySlot('q:ten_0123456789abcdefghjk:orders:0')],
  ['{c}:meta', keySlot('c')],
  ['foo{}{bar}', 8_363],
  ['foo{{bar}}zap', keySlot('{bar')],
  ['foo{bar}{zap}', keySlot('bar')],
  ['', 0],
])('the slot of %s', (key, slot) => {
  expect(keySlot(key)).toBe(slot);
});
