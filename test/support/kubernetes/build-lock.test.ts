import { stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../temporary-folder.ts';
import { acquireLock } from './build-lock.ts';

async function lockPath(): Promise<string> {
  const folder = await temporaryFolder('lock-test');
  onTestFinished(folder.remove);
  return join(folder.path, 'nested', 'build.lock');
}

test('a second holder waits for the first', async () => {
  const path = await lockPath();
  const order: string[] = [];
  const first = await acquireLock(path);
  const second = acquireLock(path, { askEveryMs: 1 }).then(lock => {
    order.push('second has it');
    return lock;
  });
  await writeFile(`${path}.other`, 'some turns of the event loop, in which the second asks');
  await stat(path);
  order.push('first lets go');
  await first.release();
  await (await second).release();
  expect(order).toEqual(['first lets go', 'second has it']);
  await expect(stat(path)).rejects.toThrow('ENOENT');
});

test('a lock that has not been touched for a long time is taken over', async () => {
  const path = await lockPath();
  await acquireLock(path);
  const longAgo = new Date(Date.now() - 31_000);
  await utimes(path, longAgo, longAgo);
  const taken = await acquireLock(path, { askEveryMs: 1 });
  expect((await stat(path)).mtimeMs).toBeGreaterThan(longAgo.getTime() + 1_000);
  await taken.release();
});
