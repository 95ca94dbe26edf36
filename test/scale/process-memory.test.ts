import { expect, test } from 'vitest';
import { parseProportional, parseResident, readProportional, readResident } from './process-memory.ts';

test('resident memory is read in MiB', () => {
  expect(parseResident('Name:\tnode\nVmHWM:\t  524288 kB\nVmRSS:\t  262144 kB\n')).toEqual({ now: 256, most: 512 });
});

test.runIf(process.platform === 'linux')('of a process that runs, and of none', async () => {
  const { now, most } = await readResident(process.pid);
  expect(now).toBeGreaterThan(10);
  expect(most).toBeGreaterThanOrEqual(now);
  expect((await readResident(0)).most).toBeNaN();
});

test('proportional memory is read in bytes', () => {
  expect(parseProportional('00400000-7fff [rollup]\nRss:   4 kB\nPss:    2 kB\nPss_Anon:  1 kB\n')).toBe(2_048);
});

test.runIf(process.platform === 'linux')('proportional memory is at most the resident one', async () => {
  const pss = await readProportional(process.pid);
  expect(pss).toBeGreaterThan(5e6);
  expect(pss / 2 ** 20).toBeLessThanOrEqual((await readResident(process.pid)).most);
  expect(await readProportional(0)).toBeNaN();
});
