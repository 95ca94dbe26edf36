import { expect, test } from 'vitest';
import { createPacedStarts } from './paced-starts.ts';

test('starts a few at once, and the next ones later, each in order and once', async () => {
  const story: (number | string)[] = [];
  const starts = Array.from({ length: 7 }, (_, i) => () => void story.push(i));
  const pace = createPacedStarts(3, async () => void story.push('caught up'));
  for (const start of [...starts, ...starts.slice(3)]) pace(start);
  expect(story).toEqual([0, 'caught up']);
  await new Promise(setImmediate);
  expect(story).toEqual([0, 'caught up', 1, 2, 3, 'caught up', 4, 5, 6, 'caught up']);
  pace(starts[0] as () => void);
  expect(story.slice(-2)).toEqual([0, 'caught up']);
});
