import { expect, test } from 'vitest';
import { explorePositions } from './position-protocol.ts';

test('positions in the queue, moved with the cursor: whatever happens, each event comes once and in order', () => {
  const { states, counterexample } = explorePositions('queue', 2, 3);
  expect(counterexample).toBeUndefined();
  expect(states).toBeGreaterThan(20_000);
});

test.each(['inbox', 'concurrent', 'lost is done'] as const)('%s: an event is lost, or comes out of order', variant => {
  const { counterexample } = explorePositions(variant, 2, 3);
  expect(counterexample?.wrong).toMatch(/routed/);
  expect(counterexample?.story.length).toBeGreaterThan(3);
});
