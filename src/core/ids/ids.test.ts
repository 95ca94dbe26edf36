import { createHash } from 'node:crypto';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyText } from '../../../test/support/any-text.ts';
import { activationId, blockId, crockford, generationOf, publicId, tenantId } from './ids.ts';

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';

/** Returns the first bits of the hash as a single number, as an alternative calculation. */
function expected(input: string, length: number): string {
  const bits = [...createHash('sha256').update(input).digest()].map(byte => byte.toString(2).padStart(8, '0')).join('');
  return Array.from({ length }, (_, i) => ALPHABET[Number.parseInt(bits.slice(i * 5, i * 5 + 5), 2)]).join('');
}

test('an id is its prefix and 100 bits of the hash of kind, namespace, and name', () => {
  fc.assert(
    fc.property(anyText(), fc.string(), (namespace, name) => {
      expect(publicId('Package', namespace, name)).toBe(`pkg_${expected(`Package/${namespace}/${name}`, 20)}`);
      expect(generationOf(name)).toBe(expected(name, 12));
    }),
  );
});

test('each kind has a separate prefix; cluster-scoped kinds have no namespace', () => {
  expect(publicId('CatalogStream', 'acme', 'orders')).toMatch(/^cat_[0-9a-hjkmnp-tv-z]{20}$/);
  expect(tenantId('acme')).toBe(publicId('Workspace', '', 'acme'));
  expect(tenantId('acme')).toMatch(/^ten_/);
  expect(publicId('Account', '', 'a')).toMatch(/^acc_/);
  expect(publicId('Subscription', 'p', 'a')).toMatch(/^sub_/);
  expect(publicId('Integration', 'p', 'a')).toMatch(/^int_/);
});

test('an activation is identified by its pair, and a block by its pair and kind', () => {
  expect(activationId('acme', 'shop', 'tenant-1')).toBe(`act_${expected('Activation/acme/shop/tenant-1', 20)}`);
  expect(activationId('acme', 'shop', 'a')).not.toBe(activationId('acme', 'shop', 'A'));
  expect(blockId('acme', 'shop', 'Package', 'x')).not.toBe(blockId('acme', 'shop', 'CatalogStream', 'x'));
  expect(blockId('acme', 'shop', 'Package', 'x')).toMatch(/^blk_/);
});

test('crockford uses the bits from the left', () => {
  expect(crockford(Uint8Array.of(0xff, 0x00), 3)).toBe('zw0');
  expect(crockford(Uint8Array.of(0x08, 0x42, 0x10, 0x84, 0x21), 8)).toBe('11111111');
});
