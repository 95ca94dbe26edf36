import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { packagesIn } from '../../test/support/loaded-packages.ts';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { ROLES, type Role } from '../config/config.ts';

/** Returns the packages loaded by a process with these roles. */
async function packagesOf(roles: readonly Role[]): Promise<string[]> {
  const coverage = await temporaryFolder('coverage');
  const source = `await (await import('./src/roles/roles.ts')).loadRoles(${JSON.stringify(roles)});`;
  await promisify(execFile)(process.execPath, ['--input-type=module', '-e', source], {
    cwd: join(import.meta.dirname, '..', '..'),
    env: { ...process.env, NODE_V8_COVERAGE: coverage.path },
  });
  const packages = await packagesIn(coverage.path);
  await coverage.remove();
  return packages;
}

test('a process only loads the packages of its roles', { timeout: 60_000 }, async () => {
  const heavy = ['@kubernetes/client-node', 'express', 'fastify', 'nodemailer', 'undici'];
  const loaded = async (roles: readonly Role[]) => (await packagesOf(roles)).filter(name => heavy.includes(name));
  expect(await loaded(['dispatcher'])).toEqual([]);
  expect(await loaded(['ingress'])).toEqual(['fastify']);
  // Only some kubeconfigs require client-node, and only the first email requires nodemailer.
  expect(await loaded(['controller'])).toEqual(['undici']);
  expect(await loaded(ROLES)).toEqual(['express', 'fastify', 'undici']);
});
