import { expect, test } from 'vitest';
import { createPushCount } from './push-count.ts';

test('a message is lost if its total does not follow from the messages before', () => {
  const count = createPushCount();
  expect([count.read(2, 20, 2), count.read(3, 30, 1), count.read(5, 50, 1), count.read(6, 60, 1)]).toEqual([
    false,
    false,
    true,
    false,
  ]);
});

test('a response that is older than a message does not change the count', () => {
  const count = createPushCount();
  count.read(5, 50, 5);
  count.skipTo(3, 30);
  expect([count.pushed(), count.bytes()]).toEqual([5, 50]);
  count.skipTo(7, 70);
  expect([count.pushed(), count.bytes(), count.read(8, 80, 1)]).toEqual([7, 70, false]);
});
