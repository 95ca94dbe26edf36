import { describe, expect, test } from 'vitest';
import { missingNodeFlags } from './node-flags.ts';

const GIB = 1_073_741_824;
const machine = { given: [], limitBytes: 0, machineBytes: 8 * GIB };
const container = { given: [], limitBytes: GIB / 2, machineBytes: 8 * GIB };

describe('flags of Node', () => {
  test('every role has a small young generation', () => {
    for (const word of ['controller', 'facade', 'ingress', 'dispatcher', 'all']) {
      expect(missingNodeFlags({ ...machine, word })).toEqual(['--max-semi-space-size=4']);
    }
  });

  test('roles that keep objects take three quarters of the memory of their container', () => {
    const heap = '--max-old-space-size=384';
    for (const word of ['controller', 'facade', 'all']) {
      expect(missingNodeFlags({ ...container, word })).toEqual(['--max-semi-space-size=4', heap]);
    }
    expect(missingNodeFlags({ ...container, word: 'ingress' })).toEqual(['--max-semi-space-size=4']);
  });

  test('uses the default if a container without a limit reports more than the machine has', () => {
    const flags = missingNodeFlags({ ...machine, limitBytes: 2 ** 44, word: 'facade' });
    expect(flags).toEqual(['--max-semi-space-size=4']);
  });

  test('flags that are given stay as they are', () => {
    const given = ['--max_old_space_size=100', '--max-semi-space-size=8'];
    expect(missingNodeFlags({ ...container, given, word: 'controller' })).toEqual([]);
  });
});
