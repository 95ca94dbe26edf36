import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { ConfigError, ENVIRONMENT, readConfig } from './config.ts';

const folder = mkdtempSync(join(tmpdir(), 'sluice-config-'));
const rootKey = join(folder, 'root.key');
writeFileSync(rootKey, Buffer.alloc(32, 1));
writeFileSync(join(folder, 'short.key'), Buffer.alloc(31, 1));
afterAll(() => rmSync(folder, { recursive: true }));

const problemsOf = (argv: string[], env: Record<string, string>): string => {
  try {
    readConfig(argv, env);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as Error).message;
  }
  return 'accepted';
};

describe('configuration', () => {
  test('has defaults for everything but the root key', () => {
    const config = readConfig(['all'], { SLUICE_ROOT_KEY_FILE: rootKey, PATH: '/bin' });
    expect(config).toMatchObject({
      roles: ['controller', 'ingress', 'router', 'dispatcher'],
      redisUrl: 'redis://127.0.0.1:6379',
      ingressPort: 8080,
      opsPort: 9090,
      allowedNetworks: [],
      logLevel: 'info',
      queueMaxBytes: 1_073_741_824,
      namespace: 'sluice-system',
    });
    expect(config.rootKey).toHaveLength(32);
    expect(Object.isFrozen(config)).toBe(true);
  });

  test('reads lists and numbers', () => {
    const env = {
      SLUICE_ALLOWED_NETWORKS: '127.0.0.0/8, ::1/128',
      SLUICE_INGRESS_PORT: '0',
      SLUICE_REDIS_URL: 'redis://a:1,redis://b:2',
    };
    expect(readConfig(['ingress'], env)).toMatchObject({
      roles: ['ingress'],
      allowedNetworks: ['127.0.0.0/8', '::1/128'],
      ingressPort: 0,
      rootKey: undefined,
    });
  });

  test.each(['controller', 'dispatcher', 'all'])('%s does not start without a root key', role => {
    expect(problemsOf([role], {})).toContain('SLUICE_ROOT_KEY_FILE: needed');
  });

  test.each([
    [
      ['router'],
      { SLUICE_REDDIS_URL: 'redis://a' },
      'SLUICE_REDDIS_URL: no such variable; did you mean SLUICE_REDIS_URL?',
    ],
    [['router'], { SLUICE_QUITE_OTHER: '1' }, 'SLUICE_QUITE_OTHER: no such variable'],
    [['router'], { SLUICE_REDIS_URL: 'http://a' }, 'SLUICE_REDIS_URL: has to be redis://'],
    [['router'], { SLUICE_OPS_PORT: '65536' }, 'SLUICE_OPS_PORT: '],
    [['router'], { SLUICE_OPS_PORT: 'x' }, 'SLUICE_OPS_PORT: '],
    [['router'], { SLUICE_LOG_LEVEL: 'loud' }, 'SLUICE_LOG_LEVEL: '],
    [['router'], { SLUICE_ALLOWED_NETWORKS: '10.0.0.0/33' }, 'SLUICE_ALLOWED_NETWORKS: has to be CIDR networks'],
    [['dispatcher'], { SLUICE_ROOT_KEY_FILE: join(folder, 'short.key') }, 'has 31 bytes, 32 or more are needed'],
    [['dispatcher'], { SLUICE_ROOT_KEY_FILE: join(folder, 'none.key') }, 'ENOENT'],
    [['alll'], {}, 'usage: sluice controller|ingress|router|dispatcher|all'],
    [[], {}, 'usage: '],
    [['all', 'now'], { SLUICE_ROOT_KEY_FILE: rootKey }, 'usage: '],
  ])('%j %j is refused and says why', (argv, env, message) => {
    expect(problemsOf(argv, env as Record<string, string>)).toContain(message);
  });

  test('names every problem at once', () => {
    const problems = problemsOf(['dispatcher'], { SLUICE_OPS_PORT: '-1', SLUICE_LOG_LEVEL: 'x', SLUICE_X: '' });
    expect(problems).toMatch(/SLUICE_X:.*\nSLUICE_OPS_PORT:.*\nSLUICE_LOG_LEVEL:/s);
  });

  test('describes every variable', () => {
    for (const [name, schema] of Object.entries(ENVIRONMENT)) expect(schema.description, name).toMatch(/\.$/);
  });
});
