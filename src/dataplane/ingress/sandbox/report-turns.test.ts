import { beforeEach, expect, test } from 'vitest';
import { createManualClock, type ManualClock } from '../../../../test/support/manual-clock.ts';
import { createReportTurns } from './report-turns.ts';

let clock: ManualClock;
let began: string[];
let run: (workspace: string, ms: number, signal?: AbortSignal) => Promise<unknown>;

beforeEach(() => {
  clock = createManualClock();
  began = [];
  const turns = createReportTurns(5_000, clock);
  run = (workspace, ms, signal = new AbortController().signal) =>
    turns.run(workspace, signal, async () => {
      began.push(`${workspace} ${clock.nowMs()}`);
      await new Promise<void>(resolve => clock.setTimer(resolve, ms));
      return 'read';
    });
});

test('a workspace has one report at a time, and uses a quarter of the time, without affecting others', async () => {
  const all = Promise.all([run('a', 100), run('a', 100), run('b', 10), run('a', 0)]);
  await clock.advance(1_000);
  expect(await all).toEqual(['read', 'read', 'read', 'read']);
  expect(began).toEqual(['a 0', 'b 0', 'a 400', 'a 800']);
  expect(clock.pendingTimers()).toBe(0);
});

test('no more than 16 requests wait, each of them for a limited time and until it is canceled', async () => {
  const gone = new AbortController();
  const first = run('a', 20_000);
  await clock.advance(0);
  const waiting = Array.from({ length: 16 }, (_, i) => run('a', 0, i === 0 ? gone.signal : undefined));
  expect(await run('a', 0)).toBe('full');
  gone.abort();
  await clock.advance(5_000);
  expect(new Set(await Promise.all(waiting))).toEqual(new Set(['aborted', 'late']));
  await clock.advance(15_000);
  expect(await first).toBe('read');
  const next = run('a', 0);
  await clock.advance(5_000);
  expect([await next, began]).toEqual(['read', ['a 0', 'a 25000']]);
});

test('a report that has failed gives back its turn', async () => {
  const turns = createReportTurns(5_000, clock);
  const { signal } = new AbortController();
  const failed = turns.run('a', signal, () => Promise.reject(new Error('no Redis')));
  await expect(failed).rejects.toThrow('no Redis');
  const next = turns.run('a', signal, async () => 'read');
  await clock.advance(0);
  expect(await next).toBe('read');
});
