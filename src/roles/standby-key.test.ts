import { expect, test } from 'vitest';
import { watchStandbyKey } from './standby-key.ts';

/** A controller with the `ours` key, using a Redis whose last leader had the `theirs` key. */
function start() {
  const state = { theirs: undefined as string | undefined, away: false, leading: false };
  let look = () => {};
  let stopped = false;
  const key = watchStandbyKey({
    redis: {
      readHash: async () => {
        if (state.away) throw new Error('unavailable');
        return state.theirs === undefined ? {} : { rootKey: state.theirs };
      },
    },
    keys: { has: theirs => theirs === 'ours', follow: () => true },
    isLeading: () => state.leading,
    setTimer: run => {
      look = run;
      return () => (stopped = true);
    },
  });
  const settle = () => new Promise(resolve => setImmediate(resolve));
  return {
    state,
    stop: key.stop,
    isStopped: () => stopped,
    reasons: async () => {
      await settle();
      look();
      await settle();
      return key.impairments().map(({ reason }) => reason);
    },
  };
}

test("a standby whose root key differs from the leader's is impaired until it leads", async () => {
  const { state, reasons } = start();
  expect(await reasons()).toEqual([]);
  state.theirs = 'ours';
  expect(await reasons()).toEqual([]);
  state.theirs = 'other';
  expect(await reasons()).toEqual(['RootKeyMismatch']);
  state.leading = true;
  expect(await reasons()).toEqual([]);
});

test('an unavailable Redis does not change anything', async () => {
  const { state, reasons } = start();
  state.away = true;
  expect(await reasons()).toEqual([]);
  state.away = false;
  state.theirs = 'other';
  expect(await reasons()).toEqual(['RootKeyMismatch']);
  state.away = true;
  expect(await reasons()).toEqual(['RootKeyMismatch']);
});

test('ends together with the role', async () => {
  const { stop, isStopped } = start();
  await stop();
  expect(isStopped()).toBe(true);
});
