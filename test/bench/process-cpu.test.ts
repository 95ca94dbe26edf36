import { expect, test } from 'vitest';
import { cpuSecondsOf } from './process-cpu.ts';

test('user and system time are read behind any name', () => {
  const fields = Array.from({ length: 50 }, (_, i) => i + 3);
  fields[11] = 250;
  fields[12] = 50;
  expect(cpuSecondsOf(`17 (a) b (c) ${fields.join(' ')}`)).toBe(3);
});
