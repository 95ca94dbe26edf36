import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..');
/** Options which can add packages to a lockfile, or install packages that are not part of the lockfile. */
const OTHER_THAN_CI =
  /\bnpm(?:[ \t]+-\S+(?:[ \t]+[^-\s]\S*)?)*[ \t]+(?:i|install|add|update)(?![-\w])|'npm',\s*\[[^\]]*'(?:i|install|add|update)'/;

test.each([
  ['npm i', true],
  ['npm install -g x', true],
  ['npm --prefix x install', true],
  ['npm --prefix x --silent add y', true],
  ['npm --loglevel=error i', true],
  ["execFile('npm', ['--prefix', 'x', 'install'])", true],
  ["execFile('npm', ['i'])", true],
  ['npm ci', false],
  ['npm --prefix x ci', false],
  ['npm install-clean', false],
  ["execFile('npm', ['--prefix', 'x', 'ci'])", false],
])('%s installs packages that are not part of a lockfile: %s', (command, expected) => {
  expect(OTHER_THAN_CI.test(command)).toBe(expected);
});

test('all packages are installed from a lockfile, using npm ci', () => {
  const files = ['Makefile', '.ci/run', ...globSync('{test,tools}/**/*.{sh,ts}', { cwd: ROOT })];
  const scripts = files
    .filter(file => !file.includes('node_modules') && file !== 'test/packages.test.ts')
    .map(file => [file, readFileSync(join(ROOT, file), 'utf8')] as const);
  expect(scripts.filter(([, text]) => OTHER_THAN_CI.test(text)).map(([file]) => file)).toEqual([]);
  const installing = scripts.filter(([, text]) => /\bnpm ci\b|'npm',\s*\[\s*'ci'/.test(text)).map(([file]) => file);
  expect(installing.toSorted()).toEqual([
    'test/support/node/install-packages.sh',
    'test/support/node/install.sh',
    'tools/site/install.sh',
  ]);
});
