import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, expect, test } from 'vitest';

const COMMAND = join(import.meta.dirname, '..', '..', '..', 'bin', 'sluice');
const folder = mkdtempSync(join(tmpdir(), 'sluice-mistakes-'));
writeFileSync(join(folder, 'root.key'), Buffer.alloc(32, 1));
writeFileSync(join(folder, 'short.key'), Buffer.alloc(31, 1));
afterAll(() => rmSync(folder, { recursive: true }));

const KEY = { SLUICE_ROOT_KEY_FILE: join(folder, 'root.key') };

/** Starts `bin/sluice` with only these variables. Returns its output. */
async function start(role: string | undefined, env: Readonly<Record<string, string>>) {
  const plain = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('SLUICE_')));
  const child = spawn(COMMAND, role === undefined ? [] : role.split(' '), { env: { ...plain, ...env } });
  const ended = new Promise<number | null>(resolve => child.once('close', resolve));
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { code: await ended, output: stdout + stderr };
}

/** The mistakes of each start. A start reports all of its errors together. */
const STARTS: readonly [string | undefined, Record<string, string>, readonly RegExp[]][] = [
  [undefined, KEY, [/usage: .*controller.*dispatcher/]],
  ['ingres', KEY, [/usage: .*ingress/]],
  ['ingress dispatcher', KEY, [/usage: /]],
  [
    'ingress',
    {
      SLUICE_REDISURL: 'redis://127.0.0.1:1',
      SLUICE_REDIS_URL: 'localhost:6379',
      SLUICE_INGRESS_PORT: 'http',
      SLUICE_FACADE_PORT: '65536',
      SLUICE_OPS_PORT: '-1',
      SLUICE_QUEUE_MAX_BYTES: '1GiB',
      SLUICE_LOG_LEVEL: 'verbose',
      SLUICE_SHUTDOWN_DELAY_SECONDS: '1h',
    },
    [
      /SLUICE_REDISURL.*did you mean SLUICE_REDIS_URL/,
      /SLUICE_REDIS_URL: must be redis:\/\//,
      /SLUICE_INGRESS_PORT: must be a number/,
      /SLUICE_FACADE_PORT: must be at most 65535/,
      /SLUICE_OPS_PORT: must be at least 0/,
      /SLUICE_QUEUE_MAX_BYTES: must be a number/,
      /SLUICE_LOG_LEVEL: must be one of .*info/,
      /SLUICE_SHUTDOWN_DELAY_SECONDS: must be a number/,
    ],
  ],
  [
    'ingress',
    { SLUICE_REDIS_URL: 'redis://127.0.0.1:1/2', SLUICE_OPS_PORT: '90.5', SLUICE_QUEUE_MAX_BYTES: '1000' },
    [
      /SLUICE_REDIS_URL: must be redis:\/\//,
      /SLUICE_OPS_PORT: must be a whole number/,
      /SLUICE_QUEUE_MAX_BYTES: must be at least 1048576/,
    ],
  ],
  [
    'controller',
    {
      ...KEY,
      SLUICE_NAMESPACE: 'Sluice_System',
      SLUICE_SMTP_URL: 'mail.example.com',
      SLUICE_SMTP_FROM: 'us',
      SLUICE_INVITATION_URL: 'shop.example',
      SLUICE_ALLOWED_NETWORKS: '10.0.0.1/33',
      SLUICE_OIDC_ISSUERS: 'http://login.example.com',
      SLUICE_OIDC_ALGORITHMS: 'HS256',
      SLUICE_OIDC_CLOCK_TOLERANCE_SECONDS: '301',
    },
    [
      /SLUICE_NAMESPACE: must be .*lowercase/,
      /SLUICE_SMTP_URL: must be smtp:\/\//,
      /SLUICE_SMTP_FROM: must be an address/,
      /SLUICE_INVITATION_URL: must be an http/,
      /SLUICE_ALLOWED_NETWORKS: .*10\.0\.0\.0\/8/,
      /SLUICE_OIDC_ISSUERS: must be https/,
      /SLUICE_OIDC_ALGORITHMS: .*RS256/,
      /SLUICE_OIDC_CLOCK_TOLERANCE_SECONDS: must be at most 300/,
    ],
  ],
  ['controller', {}, [/SLUICE_ROOT_KEY_FILE: required.*head -c 32/]],
  ['controller', { SLUICE_ROOT_KEY_FILE: join(folder, 'none.key') }, [/SLUICE_ROOT_KEY_FILE: ENOENT/]],
  ['dispatcher', { SLUICE_ROOT_KEY_FILE: join(folder, 'short.key') }, [/31 bytes, but at least 32 bytes are required/]],
  ['facade', KEY, [/SLUICE_OIDC_ISSUERS: required/, /SLUICE_OIDC_AUDIENCE: required/]],
];

test.each(STARTS)('bin/sluice %s with %j explains what to change, and does not start', async (role, env, faults) => {
  const { code, output } = await start(role, env);
  for (const words of faults) expect(output).toMatch(words);
  expect(code).toBeGreaterThan(0);
  // Each fault is printed as a readable line, without a stack trace.
  expect(output).not.toMatch(/ {4}at |ZodError|NaN/);
});
