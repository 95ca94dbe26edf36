import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { scriptSource } from '../../src/redis/scripts.ts';
import { nameCommand } from './redis-commands.ts';

test('scripts are counted by their names, what is asked for at all times is not', () => {
  const sha = createHash('sha1').update(scriptSource('act')).digest('hex');
  expect(nameCommand(['evalsha', sha, '2', 'a', 'b'])).toBe('act');
  expect(nameCommand(['ZSCORE', '{q:x}:drop', 'm'])).toBe('zscore');
  expect(nameCommand(['HGETALL', '{c}:other'])).toBe('hgetall');
  expect(nameCommand(['hgetall', '{c}:meta'])).toBeUndefined();
  expect(nameCommand(['TIME'])).toBeUndefined();
});
