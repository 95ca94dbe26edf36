import { expect, test } from 'vitest';
import { keysVersionOf, newKeysVersion } from './keys-version.ts';

test('a version is only known if the last controller that has claimed an epoch has written it', () => {
  const [field, version] = newKeysVersion(7);
  expect(keysVersionOf({ epoch: '7', [field]: version }, 5)).toEqual({ version, requestedMs: 5 });
  // `lead` writes the first one.
  expect(keysVersionOf({ epoch: '7', [field]: '7' }, 5)).toEqual({ version: '7', requestedMs: 5 });
  for (const state of [{ epoch: '8', [field]: version }, { [field]: version }, { epoch: '7' }, {}]) {
    expect(keysVersionOf(state, 5)).toBeUndefined();
  }
});
