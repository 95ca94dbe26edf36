import { expect, test } from 'vitest';
import { createStartsPerTurn } from './starts-per-turn.ts';

/** Starts works with two starts per turn. Returns the started works in their order, and a function that ends a turn. */
function begin() {
  const turns: (() => void)[] = [];
  const starts = createStartsPerTurn(2, run => void turns.push(run));
  const story: string[] = [];
  const work = (owner: string, name: string) => {
    const turn = starts.take(owner);
    if (turn === undefined) story.push(name);
    else void turn.then(() => story.push(name));
  };
  /** Ends the turn, and returns what has been started in the next one. */
  async function next(): Promise<string[]> {
    story.length = 0;
    for (const run of turns.splice(0)) run();
    await Promise.resolve();
    return [...story];
  }
  return { work, next, story, turns };
}

test('an owner starts a limited number of works in each turn, in their order', async () => {
  const { work, next, story, turns } = begin();
  for (let n = 1; n <= 5; n++) work('evil', `${n}`);
  expect(story).toEqual(['1', '2']);
  expect(await next()).toEqual(['3', '4']);
  work('evil', '6');
  expect(await next()).toEqual(['5', '6']);
  expect(await next()).toEqual([]);
  expect(turns).toEqual([]);
  work('evil', '7');
  expect(story).toEqual(['7']);
});

test('the works of other owners start at once, however many are waiting', async () => {
  const { work, next, story } = begin();
  for (let n = 1; n <= 100; n++) work('evil', `${n}`);
  work('good', 'a');
  expect(story).toEqual(['1', '2', 'a']);
  for (const name of ['b', 'c', 'd']) work('good', name);
  expect(story).toEqual(['1', '2', 'a', 'b']);
  expect(await next()).toEqual(['3', '4', 'c', 'd']);
});
