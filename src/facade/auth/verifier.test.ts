import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import packageJson from '../../../package.json' with { type: 'json' };

const fromHere = createRequire(import.meta.url);
const fromVerifier = createRequire(fromHere.resolve('express-oauth2-jwt-bearer'));

/** Reads the version of the package found by `resolve`. */
function versionOf(resolve: NodeJS.Require['resolve'], name: string): string {
  for (let folder = dirname(resolve(name)); folder !== dirname(folder); folder = dirname(folder)) {
    try {
      const found = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Record<string, string>;
      if (found['name'] === name && found['version'] !== undefined) return found['version'];
    } catch {
      // This folder does not contain one.
    }
  }
  throw new Error(`cannot find ${name}`);
}

test('tokens are verified with jose 6, the same copy that signs them in tests', () => {
  expect(versionOf(fromVerifier.resolve, 'jose')).toBe(packageJson.devDependencies.jose);
  expect(packageJson.devDependencies.jose).toMatch(/^6\./);
});
