import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const MODULE = join(import.meta.dirname, 'stop-signal.ts');

/** A program that reaches its end because of the signal that it has received. */
const PROGRAM = `
import { once } from 'node:events';
setInterval(() => {}, 60_000);
const { stopOnSignal } = await import(${JSON.stringify(MODULE)});
const stop = stopOnSignal(async () => {
  console.log('stopping');
  await new Promise(resolve => setTimeout(resolve, 50));
  console.log('stopped');
});
const signalled = once(process, 'SIGTERM');
process.kill(process.pid, 'SIGTERM');
await signalled;
await stop();
process.exit(0);
`;

test('a program that ends because of a signal is only stopped once, and exits with the number of the signal', async () => {
  const { stdout, code } = await new Promise<{ stdout: string; code: unknown }>(resolve => {
    execFile(process.execPath, ['--input-type=module', '--eval', PROGRAM], (error, output) =>
      resolve({ stdout: output, code: error?.code }),
    );
  });
  expect({ stdout, code }).toEqual({ stdout: 'stopping\nstopped\n', code: 143 });
});
