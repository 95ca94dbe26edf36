import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyText } from '../../../test/support/any-text.ts';
import { deriveSealKeys, open, SealError, seal } from './seal.ts';

const keys = deriveSealKeys(Buffer.alloc(32, 1));
const otherKeys = deriveSealKeys(Buffer.alloc(32, 2));
const START = `s2.${keys.id}.`;
const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const SECRET = 'Bearer do-not-show-me';

function errorOf(act: () => unknown): SealError {
  try {
    act();
  } catch (error) {
    if (error instanceof SealError) return error;
    throw error;
  }
  throw new Error('the value was decrypted');
}

describe('seal and open', () => {
  test('return any bytes, and the same text for the same input', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 4096 }), fc.string({ unit: 'grapheme' }), (plain, aad) => {
        const sealed = seal(keys, aad, plain);
        expect(seal(deriveSealKeys(Buffer.alloc(32, 1)), aad, Buffer.from(plain))).toBe(sealed);
        expect(open(keys, aad, sealed)).toEqual(Buffer.from(plain));
        expect(sealed).toMatch(/^s2\.[A-Za-z0-9_-]{10}\.[A-Za-z0-9_-]+$/);
      }),
    );
  });

  test('return different texts (including nonces) for different inputs', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.string(), fc.string(), (aad, plain, otherAad, otherPlain) => {
        fc.pre(aad !== otherAad || plain !== otherPlain);
        expect(seal(keys, aad, plain).slice(0, START.length + 16)).not.toBe(
          seal(keys, otherAad, otherPlain).slice(0, START.length + 16),
        );
      }),
    );
    expect(seal(keys, 'ab', 'c').slice(0, START.length + 16)).not.toBe(
      seal(keys, 'a', 'bc').slice(0, START.length + 16),
    );
  });

  test('refuse another key, another context, and any changed bit', () => {
    const sealed = seal(keys, 'sub_1', SECRET);
    expect(errorOf(() => open(otherKeys, 'sub_1', sealed)).code).toBe('unknown_key');
    expect(errorOf(() => open({ find: () => otherKeys }, 'sub_1', sealed)).code).toBe('wrong_key_or_context');
    expect(errorOf(() => open(keys, 'sub_2', sealed)).code).toBe('wrong_key_or_context');
    const bytes = Buffer.from(sealed.slice(START.length), 'base64url');
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const flipped = Buffer.from(bytes);
      flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(errorOf(() => open(keys, 'sub_1', `${START}${flipped.toString('base64url')}`)).code).toBe(
        'wrong_key_or_context',
      );
    }
  });

  test.each([
    '',
    's1.AAAA',
    START,
    `${START}AAAA`,
    'plain text',
    's2.',
    '{"url":"https://x"}',
    `${START}${'!'.repeat(60)}`,
  ])('%s is malformed', text => {
    expect(errorOf(() => open(keys, 'sub_1', text)).code).toBe('malformed');
  });

  test.each(['', 'a', 'ab', 'abc'])('the bits that are left over in a sealed value are 0: %j', plain => {
    const sealed = seal(keys, 'sub_1', Buffer.from(plain));
    const bytes = Buffer.from(sealed.slice(START.length), 'base64url');
    const others = [...BASE64URL].map(last => sealed.slice(0, -1) + last).filter(text => text !== sealed);
    const same = others.filter(text => Buffer.from(text.slice(START.length), 'base64url').equals(bytes));
    expect(same).toHaveLength([0, 15, 3][bytes.length % 3] as number);
    for (const text of same) expect(errorOf(() => open(keys, 'sub_1', text)).code).toBe('malformed');
  });

  test('a sealed value has a single representation', () => {
    const sealed = seal(keys, 'sub_1', SECRET);
    for (const text of [`${sealed}!`, `${sealed}=`, `${sealed}\n`, ` ${sealed}`, sealed.replace('s2.', 's2. ')]) {
      expect(errorOf(() => open(keys, 'sub_1', text)).code).toBe('malformed');
    }
  });

  test('any other text throws a SealError', () => {
    fc.assert(
      fc.property(anyText(), text => {
        expect(errorOf(() => open(keys, 'sub_1', `${START}${text}`))).toBeInstanceOf(SealError);
      }),
    );
  });

  test('errors do not contain the sealed text or its content', () => {
    const sealed = seal(keys, 'sub_1', SECRET);
    for (const act of [() => open(otherKeys, 'sub_1', sealed), () => open(keys, 'sub_1', SECRET)]) {
      const error = errorOf(act);
      const shown = `${error.stack} ${JSON.stringify(error)} ${String(error.cause)}`;
      expect(shown).not.toContain(SECRET);
      expect(shown).not.toContain(sealed);
    }
    expect(sealed).not.toContain(Buffer.from(SECRET).toString('base64url').slice(2, 20));
  });

  test('a short root key is refused', () => {
    expect(() => deriveSealKeys(Buffer.alloc(31))).toThrow(RangeError);
  });
});
