import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { scriptSource } from '../../src/redis/scripts.ts';
import { nameCommand } from './redis-commands.ts';

test('counts scripts by name, without background commands', () => {
  const sha = createHash('sha1').update(scriptSource('act')).digest('hex');
  expect(nameCommand(['evalsha', sha, '2', 'a', 'b'])).toBe('act');
  expect(nameCommand(['ZSCORE', '{q:x}:drop', 'm'])).toBe('zscore');
  expect(nameCommand(['HGETALL', '{c}:other'])).toBe('hgetall');
  expect(nameCommand(['hgetall', '{c}:meta'])).toBeUndefined();
  expect(nameCommand(['TIME'])).toBeUndefined();
});
