import { expect, test } from 'vitest';
import { exploreHints } from './hint-protocol.ts';

test('compare-and-set on a unique token never loses a wake-up', () => {
  const { states, counterexample } = exploreHints('token');
  expect(counterexample).toBeUndefined();
  expect(states).toBeGreaterThan(1_000);
});

test.each(['score', 'unconditional'] as const)('%s removal loses one', variant => {
  const { counterexample } = exploreHints(variant);
  expect(counterexample?.wrong).toMatch(/no hint/);
  expect(counterexample?.story).toContain('A removes the hint');
});
