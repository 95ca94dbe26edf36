import { expect, test } from 'vitest';
import { problemAnswer } from './problem-answers.ts';

test('a problem that ends by itself contains the time of the next attempt, unless the refusal knows it', () => {
  const retryAfter = (...refusal: Parameters<typeof problemAnswer>) => problemAnswer(...refusal).headers['retry-after'];
  expect(retryAfter('overloaded')).toBe('1');
  expect(retryAfter('overloaded', { headers: { 'retry-after': '7' } })).toBe('7');
  expect(retryAfter('storage_limit')).toBe('30');
  expect(retryAfter('forbidden')).toBeUndefined();
});

test('a problem is never cached, and cannot have another content type', () => {
  const { status, headers } = problemAnswer('not_found', { headers: { 'content-type': 'text/html' } });
  expect([status, headers]).toEqual([404, { 'content-type': 'application/problem+json', 'cache-control': 'no-store' }]);
});
