import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

/** Runs the test files with `FILE` in their path `N` times. Prints the runs that have failed. */

const ROOT = join(import.meta.dirname, '..', '..', '..');
const [file = '', times = '20'] = process.argv.slice(2);

if (file === '' || !(Number(times) > 0)) {
  console.error('usage: make test-repeat FILE=<part of a path> N=20');
  process.exit(2);
}

const vitest = join(ROOT, 'node_modules', 'vitest', 'vitest.mjs');
const failed: number[] = [];
for (let run = 1; run <= Number(times); run++) {
  const { status } = spawnSync(process.execPath, [vitest, 'run', '--reporter=dot', file], {
    cwd: ROOT,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if (status !== 0) failed.push(run);
  console.log(`run ${run} of ${times}: ${status === 0 ? 'passed' : 'failed'}; failed so far: ${failed.length}`);
}
process.exitCode = failed.length > 0 ? 1 : 0;
