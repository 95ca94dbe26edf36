import { describe, expect, it } from 'vitest';
import { compareResourceVersions, isOlder } from './resource-version.ts';

describe('resourceVersion', () => {
  it.each([
    ['9', '10', true],
    ['10', '9', false],
    ['10', '10', false],
    ['9007199254740993', '9007199254740994', true],
  ])('%s is older than %s: %s', (a, b, older) => {
    expect(isOlder(a, b)).toBe(older);
  });

  it('returns undefined if a version is not a number', () => {
    expect(compareResourceVersions('abc', '1')).toBeUndefined();
    expect(compareResourceVersions('abc', 'abc')).toBe(0);
    expect(isOlder('a', 'b')).toBe(false);
  });
});
