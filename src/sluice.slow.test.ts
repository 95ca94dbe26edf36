import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import packageJson from '../package.json' with { type: 'json' };
import { ROLES } from './config/config.ts';

const ROOT = join(import.meta.dirname, '..');
const COMMAND = join(ROOT, 'bin', 'sluice');

// Each test starts programs. On a busy machine, this takes a long time.
vi.setConfig({ testTimeout: 60_000 });

/** Prints the process id and its flags before running its program. */
const SPY = '--import=data:text/javascript,console.log(JSON.stringify([process.pid,process.execArgv]))';

/** Runs a command until it ends, without any variables of Sluice. */
function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const { status, stdout, stderr } = spawnSync(command, args, {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

test('--version prints the version', () => {
  expect(run(COMMAND, ['--version'])).toEqual({ status: 0, stdout: `${packageJson.version}\n`, stderr: '' });
});

test('--help describes each role and contains the page of its settings', () => {
  const { status, stdout } = run(COMMAND, ['--help']);
  expect(status).toBe(0);
  for (const role of [...ROLES, 'all']) expect(stdout).toMatch(new RegExp(`^ {2}${role} +\\w.*$`, 'm'));
  expect(stdout).toContain('docs/configuration.md');
});

test('refuses a wrong role and prints the usage', () => {
  const { status, stderr } = run(COMMAND, ['controler']);
  expect(status).toBe(1);
  expect(stderr).toContain(
    'usage: sluice controller|facade|ingress|dispatcher|all. For more information, run sluice --help',
  );
});

test.each([
  ['bin/sluice', COMMAND, []],
  ['node src/sluice.ts, as in an image without a shell,', process.execPath, [join(ROOT, 'src', 'sluice.ts')]],
])('%s sets the flags of the controller in the same process, and keeps existing flags', (_name, command, args) => {
  // Without a root key, the controller exits after reading its settings.
  const { status, stdout, stderr } = run(command, [...args, 'controller'], { NODE_OPTIONS: SPY });
  const [first, second] = stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as [number, string[]]);
  expect(first?.[1]).toEqual([]);
  expect(second?.[0]).toBe(first?.[0]);
  expect(second?.[1]).toContain('--max-semi-space-size=4');
  expect([status, stderr]).toEqual([1, expect.stringMatching(/^SLUICE_ROOT_KEY_FILE: required/)]);
});

/** Runs ingress, which waits for Redis, together with other code. */
function runWith(code: string) {
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(code)}`;
  return run(COMMAND, ['ingress'], {
    NODE_OPTIONS,
    SLUICE_REDIS_URL: 'redis://127.0.0.1:1',
    SLUICE_OPS_PORT: '0',
    SLUICE_SHUTDOWN_DELAY_SECONDS: '0',
  });
}

test('a signal during the start stops the process in order, because process 1 of a container would ignore it', () => {
  const code = `import { registerHooks } from 'node:module';
    registerHooks({
      resolve(name, context, next) {
        if (name === './main.ts') process.kill(process.pid, 'SIGTERM');
        return next(name, context);
      },
    });`;
  expect(runWith(code)).toMatchObject({ status: 0, stderr: '' });
});

test('an unexpected error ends the process with a log line, without the arguments of a command of Redis', () => {
  const code = `const timer = setInterval(() => {
    if (process.listenerCount('uncaughtException') === 0) return;
    clearInterval(timer);
    Promise.reject(Object.assign(new Error('lost'), { command: { name: 'auth', args: ['top' + 'secret'] } }));
  }, 1);
  setTimeout(() => process.exit(3), 10_000).unref();`;
  const { status, stdout, stderr } = runWith(code);
  expect([status, stderr]).toEqual([1, '']);
  // This line is written immediately. An earlier line that is still being written can end up behind it.
  const lines = stdout.trim().split('\n');
  const fatal = lines.map(line => JSON.parse(line) as object).filter(line => 'level' in line && line.level === 'fatal');
  expect(fatal).toMatchObject([{ msg: 'sluice ends because of an unexpected error', err: { message: 'lost' } }]);
  expect(stdout).not.toContain('topsecret');
});
