import { expect, test } from 'vitest';
import { parseOwnMemory, parseResident, readOwnMemory, readResident } from './process-memory.ts';

test('parses resident memory in MiB', () => {
  expect(parseResident('Name:\tnode\nVmHWM:\t  524288 kB\nVmRSS:\t  262144 kB\n')).toEqual({ now: 256, most: 512 });
});

test.runIf(process.platform === 'linux')(
  'reads the resident memory of a running process, and returns NaN if the process does not exist',
  async () => {
    const { now, most } = await readResident(process.pid);
    expect(now).toBeGreaterThan(10);
    expect(most).toBeGreaterThanOrEqual(now);
    expect((await readResident(0)).most).toBeNaN();
  },
);

test('parses the private memory of a process in bytes', () => {
  const rollup = '00400000-7fff [rollup]\nRss:   8 kB\nPss_Anon:  1 kB\nAnonymous:    2 kB\nLazyFree: 4 kB\n';
  expect(parseOwnMemory(rollup)).toBe(2_048);
});

test.runIf(process.platform === 'linux')(
  'reads the private memory of a running process, and returns NaN if the process does not exist',
  async () => {
    const own = await readOwnMemory(process.pid);
    expect(own).toBeGreaterThan(5e6);
    expect(own / 2 ** 20).toBeLessThanOrEqual((await readResident(process.pid)).most);
    expect(await readOwnMemory(0)).toBeNaN();
  },
);
