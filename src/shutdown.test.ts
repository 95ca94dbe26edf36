import { expect, test } from 'vitest';
import { createShutdown } from './shutdown.ts';

function start(delayMs: number) {
  const done: string[] = [];
  const timers = new Map<() => void, number>();
  const stopping = Promise.withResolvers<void>();
  const shutdown = createShutdown(
    {
      drain: () => done.push('drain'),
      stop: () => {
        done.push('stop');
        return stopping.promise;
      },
      giveUp: () => done.push('give up'),
    },
    delayMs,
    (action, ms) => {
      timers.set(action, ms);
      return () => timers.delete(action);
    },
  );
  const fire = (ms: number) => {
    for (const [action, due] of timers) {
      if (due !== ms) continue;
      timers.delete(action);
      action();
    }
  };
  return { done, timers, shutdown, fire, stopping };
}

test('a pod that is terminated becomes unready, continues to serve, and finishes', () => {
  const { done, shutdown, fire } = start(5_000);
  expect(shutdown.health().ready).toBe(true);
  shutdown.onSignal('SIGTERM');
  expect(shutdown.health()).toEqual({ ready: false, impairments: [{ message: 'The process is stopping.' }] });
  expect(done).toEqual(['drain']);
  fire(5_000);
  expect(done).toEqual(['drain', 'stop']);
});

test.each([
  ['SIGINT', 5_000],
  ['SIGTERM', 0],
] as const)('%s with a wait of %i ms finishes immediately', (signal, delayMs) => {
  const { done, shutdown } = start(delayMs);
  shutdown.onSignal(signal);
  expect(done).toEqual(['drain', 'stop']);
});

test('a second signal ends the wait, and a third does not change anything', () => {
  const { done, shutdown, fire, timers } = start(5_000);
  for (let i = 0; i < 3; i++) shutdown.onSignal('SIGTERM');
  expect(done).toEqual(['drain', 'stop']);
  expect([...timers.values()]).toEqual([20_000]);
  fire(5_000);
  expect(done).toEqual(['drain', 'stop']);
});

test('aborts work that cannot finish, and completes the rest', async () => {
  const slow = start(0);
  slow.shutdown.onSignal('SIGTERM');
  slow.fire(20_000);
  expect(slow.done).toEqual(['drain', 'stop', 'give up']);

  const quick = start(0);
  quick.shutdown.onSignal('SIGTERM');
  quick.stopping.resolve();
  await quick.stopping.promise;
  await Promise.resolve();
  expect(quick.timers.size).toBe(0);

  const broken = start(0);
  broken.shutdown.onSignal('SIGTERM');
  broken.stopping.reject(new Error('cannot'));
  await expect.poll(() => broken.done).toContain('give up');
});
