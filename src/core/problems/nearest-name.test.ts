import { expect, test } from 'vitest';
import { nearestName } from './nearest-name.ts';

const KNOWN = ['SLUICE_LOG_LEVEL', 'SLUICE_OPS_PORT', 'SLUICE_FACADE_PORT'];

test.each([
  ['SLUICE_LOGLEVEL', 'SLUICE_LOG_LEVEL'],
  ['SLUICE_OPS_PROT', 'SLUICE_OPS_PORT'],
  ['SLUICE_FACADE_PORTS', 'SLUICE_FACADE_PORT'],
  ['SLUICE_REDIS_URL', undefined],
  ['', undefined],
])('for %s, the suggestion is %s', (name, meant) => {
  expect(nearestName(name, KNOWN)).toBe(meant);
});
