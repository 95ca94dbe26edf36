import { expect, test } from 'vitest';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { longPoll } from './long-poll.ts';

function start(waitMs: number) {
  const clock = createManualClock();
  const caller = new AbortController();
  const asked: number[] = [];
  const state = { value: 'nothing' };
  const ask = async () => {
    asked.push(clock.nowMs());
    return state.value;
  };
  const answer = longPoll({ clock, signal: caller.signal, waitMs }, ask, value => value !== 'nothing');
  return { clock, caller, asked, state, answer };
}

test('reads once without a waiting time', async () => {
  const { answer, asked } = start(0);
  expect(await answer).toBe('nothing');
  expect(asked).toEqual([0]);
});

test('returns early if there is an event, and late if the time is over', async () => {
  const early = start(30_000);
  await early.clock.advance(1_200);
  early.state.value = 'something';
  await early.clock.advance(1_000);
  expect(await early.answer).toBe('something');
  expect(early.asked).toEqual([0, 500, 1_000, 1_500]);

  const late = start(1_100);
  await late.clock.advance(5_000);
  expect(await late.answer).toBe('nothing');
  expect(late.asked).toEqual([0, 500, 1_000, 1_100]);
});

test('stops reading when the caller has disconnected, and does not leave a timer', async () => {
  const { answer, asked, caller, clock } = start(30_000);
  await clock.advance(600);
  caller.abort();
  expect(await answer).toBe('nothing');
  expect(asked).toEqual([0, 500]);
  expect(clock.pendingTimers()).toBe(0);
});
