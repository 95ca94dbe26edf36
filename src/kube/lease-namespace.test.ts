import { expect, test } from 'vitest';
import { leaseNamespace } from './lease-namespace.ts';

test.each([
  ['chosen', 'of-the-pod', 'chosen'],
  [undefined, 'of-the-pod', 'of-the-pod'],
  [undefined, undefined, 'sluice-system'],
])('SLUICE_NAMESPACE %s, own namespace %s: %s', (configured, own, expected) => {
  expect(leaseNamespace(configured, own)).toBe(expected);
});
