import { expect, test } from 'vitest';
import { createPacedStarts } from './paced-starts.ts';

const failOn = (error: unknown) => {
  throw error;
};

test('starts a few at once, and the next ones later, each in order and once', async () => {
  const story: (number | string)[] = [];
  const starts = Array.from({ length: 7 }, (_, i) => () => void story.push(i));
  const pace = createPacedStarts(3, async () => void story.push('caught up'), failOn);
  for (const start of [...starts, ...starts.slice(3)]) pace(start);
  expect(story).toEqual([0, 'caught up']);
  await new Promise(setImmediate);
  expect(story).toEqual([0, 'caught up', 1, 2, 3, 'caught up', 4, 5, 6, 'caught up']);
  pace(starts[0] as () => void);
  expect(story.slice(-2)).toEqual([0, 'caught up']);
});

test.each([
  ['throws', () => failOn(new Error('broken'))],
  ['rejects', async () => failOn(new Error('broken'))],
])('a function that %s is reported, and does not stop the others', async (_how, broken) => {
  const story: (number | string)[] = [];
  const errors: unknown[] = [];
  const pace = createPacedStarts(
    2,
    async () => {},
    error => errors.push((error as Error).message),
  );
  for (const start of [() => void story.push(0), broken, () => void story.push(1)]) pace(start);
  await new Promise(setImmediate);
  pace(() => void story.push('later'));
  await new Promise(setImmediate);
  expect([story, errors]).toEqual([[0, 1, 'later'], ['broken']]);
});
