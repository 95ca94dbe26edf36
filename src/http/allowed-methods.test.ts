import { expect, test } from 'vitest';
import { createAllowedMethods } from './allowed-methods.ts';

test('returns the methods of a path that exists with other methods, and nothing for other paths', () => {
  const allowed = createAllowedMethods();
  allowed.add('POST', '/events/:tenant/:queue');
  allowed.add(['GET', 'HEAD'], '/events/:tenant/:queue');
  allowed.add('GET', '/a.b');
  expect(allowed.find('/events/a/b')).toBe('GET, HEAD, POST');
  expect(allowed.find('/a.b')).toBe('GET');
  for (const path of ['/events/a', '/events/a/b/c', '/events/a/b/', '/events//b', '/axb']) {
    expect(allowed.find(path)).toBeUndefined();
  }
});
