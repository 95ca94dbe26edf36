import { describe, expect, test } from 'vitest';
import { missingNodeFlags } from './node-flags.ts';

const GIB = 1_073_741_824;
const machine = { given: [], limitBytes: 0, machineBytes: 8 * GIB };
const container = { given: [], limitBytes: GIB / 2, machineBytes: 8 * GIB };

describe('flags of Node', () => {
  test('ingress and dispatchers keep the default young generation of Node, and all others use a small one', () => {
    for (const word of ['controller', 'facade', 'all']) {
      expect(missingNodeFlags({ ...machine, word })).toEqual(['--max-semi-space-size=4']);
    }
    for (const word of ['ingress', 'dispatcher', 'x', undefined]) {
      expect(missingNodeFlags({ ...machine, word })).toEqual([]);
    }
  });

  test('roles that store objects use three quarters of the memory of their container', () => {
    const heap = '--max-old-space-size=384';
    for (const word of ['controller', 'facade', 'all']) {
      expect(missingNodeFlags({ ...container, word })).toEqual(['--max-semi-space-size=4', heap]);
    }
    expect(missingNodeFlags({ ...container, word: 'ingress' })).toEqual([]);
  });

  test('uses the default if a container without a limit reports more than the machine has', () => {
    const flags = missingNodeFlags({ ...machine, limitBytes: 2 ** 44, word: 'facade' });
    expect(flags).toEqual(['--max-semi-space-size=4']);
  });

  test('specified flags are not changed', () => {
    const given = ['--max_old_space_size=100', '--max-semi-space-size=8'];
    expect(missingNodeFlags({ ...container, given, word: 'controller' })).toEqual([]);
  });
});
