import { expect, onTestFinished, test } from 'vitest';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { watchStandbyRedis } from './standby-redis.ts';

function start() {
  const clock = createManualClock();
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const state = { own: 'a' as string | undefined, leaders: undefined as string | undefined, away: false };
  const check = watchStandbyRedis({
    readStore: async () => {
      if (state.away) throw new Error('unavailable');
      return state.own;
    },
    leadersStore: () => state.leaders,
    clock,
    stop: stop.signal,
  });
  return { clock, state, check };
}

test('reports a leader with another Redis after 30 s, without making the standby unready', async () => {
  const { clock, state, check } = start();
  state.leaders = 'b';
  await clock.advance(30_000);
  expect(check()).toEqual([]);
  await clock.advance(10_000);
  expect(check()).toMatchObject([{ reason: 'ForeignRedis', cause: 'dependency' }]);
  state.away = true;
  await clock.advance(10_000);
  expect(check()).toHaveLength(1);
  // This replica leads, or nobody leads.
  state.leaders = undefined;
  expect(check()).toEqual([]);
});

test('does not report a leader that uses the same Redis, even after Redis has lost its data', async () => {
  const { clock, state, check } = start();
  state.leaders = 'a';
  await clock.advance(60_000);
  expect(check()).toEqual([]);
  state.own = undefined;
  await clock.advance(20_000);
  state.own = 'new';
  state.leaders = 'new';
  await clock.advance(60_000);
  expect(check()).toEqual([]);
});
