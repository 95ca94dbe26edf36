import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test, vi } from 'vitest';
import { startChild, waitUntilReady } from './child-process.ts';
import { temporaryFolder } from './temporary-folder.ts';

async function newLog(): Promise<string> {
  const folder = await temporaryFolder('child-test');
  onTestFinished(folder.remove);
  return join(folder.path, 'child.log');
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** A parent that starts a child, creates a folder, prints both, and keeps running. */
const PARENT = `
import { startChild } from '${import.meta.dirname}/child-process.ts';
import { temporaryFolder } from '${import.meta.dirname}/temporary-folder.ts';
const folder = await temporaryFolder('child-test');
const child = startChild({ command: 'sleep', args: ['300'], log: folder.path + '/log' });
console.log(JSON.stringify({ pid: child.pid, folder: folder.path }));
`;

test('a child and a temporary folder are removed after their parent was killed with SIGKILL', async () => {
  const parent = spawn(process.execPath, ['--input-type=module', '-e', PARENT], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void parent.kill('SIGKILL'));
  const [line] = await once(createInterface(parent.stdout), 'line');
  const { pid, folder }: { pid: number; folder: string } = JSON.parse(line);
  expect(isAlive(pid)).toBe(true);
  expect(existsSync(folder)).toBe(true);

  parent.kill('SIGKILL');

  await vi.waitFor(() => expect(isAlive(pid)).toBe(false), { timeout: 20_000, interval: 20 });
  await vi.waitFor(() => expect(existsSync(folder)).toBe(false), { timeout: 20_000, interval: 50 });
});

test('the pid belongs to the program, and not to a shell around it', async () => {
  const log = await newLog();
  const child = startChild({ command: 'sh', args: ['-c', 'echo $$'], log });
  expect(await child.exited).toEqual({ code: 0, signal: null });
  expect(await readFile(log, 'utf8')).toBe(`${child.pid}\n`);
});

test('arguments and environment reach the program unchanged', async () => {
  const child = startChild({
    command: 'sh',
    args: ['-c', 'printf "%s|" "$WORD" "$@"', 'sh', 'two words', '$HOME', ''],
    env: { ...process.env, WORD: 'a b' },
    log: await newLog(),
  });
  await child.exited;
  expect(await child.logTail()).toBe('a b|two words|$HOME||');
});

test('stop() kills a process that ignores SIGTERM', async () => {
  const log = await newLog();
  const child = startChild({ command: 'sh', args: ['-c', 'trap "" TERM; echo up; while :; do sleep 1; done'], log });
  await waitUntilReady(child, async () => (await child.logTail()) === 'up', {
    name: 'sh',
    deadlineMs: 4_000,
    everyMs: 5,
  });
  await child.stop(20);
  expect(await child.exited).toEqual({ code: null, signal: 'SIGKILL' });
  expect(child.running()).toBe(false);
});

test('waiting for a program that ends throws with the end of its log', async () => {
  const child = startChild({ command: 'sh', args: ['-c', 'echo port is taken; exit 3'], log: await newLog() });
  const waiting = waitUntilReady(child, async () => false, { name: 'server', deadlineMs: 4_000, everyMs: 5 });
  await expect(waiting).rejects.toThrow(
    'server ended before it was ready (exit code 3); the end of its log:\nport is taken',
  );
});

test('waiting for a program that is never ready throws at the deadline', async () => {
  const child = startChild({ command: 'sleep', args: ['300'], log: await newLog() });
  onTestFinished(() => child.stop());
  const waiting = waitUntilReady(child, () => Promise.reject(new Error('refused')), {
    name: 'server',
    deadlineMs: 30,
    everyMs: 5,
  });
  await expect(waiting).rejects.toThrow('server was not ready within 0.03 s');
});
