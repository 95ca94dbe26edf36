import { expect, test } from 'vitest';
import { tokensOf } from './tokens.ts';

test.each([
  [0, 1],
  [1, 1],
  [16_384, 1],
  [16_385, 2],
  [32_768, 2],
  [32_769, 3],
  [262_144, 16],
])('%d bytes cost %d', (bytes, tokens) => expect(tokensOf(bytes)).toBe(tokens));
