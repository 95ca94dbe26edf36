import { expect, test } from 'vitest';
import { parseOwnMemory, parseResident, readOwnMemory, readResident } from './process-memory.ts';

test('resident memory is read in MiB', () => {
  expect(parseResident('Name:\tnode\nVmHWM:\t  524288 kB\nVmRSS:\t  262144 kB\n')).toEqual({ now: 256, most: 512 });
});

test.runIf(process.platform === 'linux')('of a process that runs, and of none', async () => {
  const { now, most } = await readResident(process.pid);
  expect(now).toBeGreaterThan(10);
  expect(most).toBeGreaterThanOrEqual(now);
  expect((await readResident(0)).most).toBeNaN();
});

test('reads the memory that a process has for itself in bytes', () => {
  const rollup = '00400000-7fff [rollup]\nRss:   8 kB\nPss_Anon:  1 kB\nAnonymous:    2 kB\nLazyFree: 4 kB\n';
  expect(parseOwnMemory(rollup)).toBe(2_048);
});

test.runIf(process.platform === 'linux')('reads it of a running process, and NaN without one', async () => {
  const own = await readOwnMemory(process.pid);
  expect(own).toBeGreaterThan(5e6);
  expect(own / 2 ** 20).toBeLessThanOrEqual((await readResident(process.pid)).most);
  expect(await readOwnMemory(0)).toBeNaN();
});
