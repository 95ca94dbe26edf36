import { expect, test } from 'vitest';
import { createAbsence } from './absence.ts';

test('the room of a part that does not respond is lent to others once, until it responds', () => {
  let claims = 3;
  let lent = 0;
  const room = { give: (count: number) => void (lent += count), take: (count: number) => void (lent -= count) };
  const absence = createAbsence({ book: { count: () => claims }, room, onMissing: () => {} });
  absence.silent();
  claims = 5;
  absence.begin();
  expect([lent, absence.roomGiven(), absence.isGone()]).toEqual([3, 3, true]);
  expect([absence.end(), lent, absence.roomGiven()]).toEqual([true, 0, 0]);
  expect([absence.end(), lent]).toEqual([false, 0]);
  absence.silent();
  expect([lent, absence.isGone()]).toEqual([5, false]);
});
