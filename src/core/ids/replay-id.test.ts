import { expect, test } from 'vitest';
import { replayIdOf } from './replay-id.ts';

test('a key that is a valid id is the id; another key is hashed', () => {
  expect(replayIdOf('Again_1-b', 'inbox', {})).toBe('Again_1-b');
  const odd = replayIdOf('again, please', 'inbox', { ref: 'a' });
  expect(odd).toMatch(/^rpl_[0-9a-z]{20}$/);
  expect(replayIdOf('again, please', 'other', {})).toBe(odd);
  expect(replayIdOf('x'.repeat(65), 'inbox', {})).toMatch(/^rpl_/);
});

test('is derived from the replayed events if there is no key', () => {
  const id = replayIdOf(undefined, 'inbox', { ref: 'a' });
  expect(replayIdOf(undefined, 'inbox', { ref: 'a' })).toBe(id);
  expect(replayIdOf(undefined, 'inbox', { ref: 'b' })).not.toBe(id);
  expect(replayIdOf(undefined, 'other', { ref: 'a' })).not.toBe(id);
});
