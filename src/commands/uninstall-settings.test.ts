import { expect, test } from 'vitest';
import { ConfigError } from '../config/config.ts';
import { readUninstallSettings } from './uninstall-settings.ts';

test('reads the installation and its Redis', () => {
  const env = { SLUICE_INSTANCE: 'blue', SLUICE_NAMESPACE: 'blue-system', SLUICE_REDIS_URL: 'redis://redis:6379' };
  expect(readUninstallSettings(env)).toMatchObject({
    instance: 'blue',
    namespace: 'blue-system',
    redis: { url: 'redis://redis:6379' },
    redisProblems: [],
  });
});

test('ignores errors in settings that are only used by the roles', () => {
  const env = { SLUICE_ALLOWED_NETWORKS: '10.0.0.0/99', SLUICE_OIDC_ISSUERS: 'none', SLUICE_INGRESS_PORT: 'http' };
  expect(readUninstallSettings(env)).toMatchObject({ instance: '', redisProblems: [] });
});

test.each([
  [{ SLUICE_REDIS_URL: 'http://redis' }, 'SLUICE_REDIS_URL: '],
  [{ SLUICE_REDIS_PASSWORD_FILE: '/nowhere/password' }, 'SLUICE_REDIS_PASSWORD_FILE: ENOENT: /nowhere/password'],
])('invalid settings for Redis are allowed and reported: %j', (env, problem) => {
  const { redis, redisProblems } = readUninstallSettings(env);
  expect(redis).toBeUndefined();
  expect(redisProblems.join('\n')).toContain(problem);
});

test.each([
  [{ SLUICE_INSTANC: 'blue' }, 'SLUICE_INSTANC: unknown variable; did you mean SLUICE_INSTANCE?'],
  [{ SLUICE_INSTANCE: 'Blue' }, 'SLUICE_INSTANCE: must be a name'],
])('an invalid installation name is refused: %j', (env, problem) => {
  expect(() => readUninstallSettings(env)).toThrow(ConfigError);
  expect(() => readUninstallSettings(env)).toThrow(problem);
});
