import { expect, test } from 'vitest';
import { parseResident, readResident } from './process-memory.ts';

test('resident memory is read in MiB', () => {
  expect(parseResident('Name:\tnode\nVmHWM:\t  524288 kB\nVmRSS:\t  262144 kB\n')).toEqual({ now: 256, most: 512 });
});

test.runIf(process.platform === 'linux')('of a process that runs, and of none', async () => {
  const { now, most } = await readResident(process.pid);
  expect(now).toBeGreaterThan(10);
  expect(most).toBeGreaterThanOrEqual(now);
  expect((await readResident(0)).most).toBeNaN();
});
