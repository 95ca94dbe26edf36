import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { beforeEach, expect, test } from 'vitest';
import { createManualClock, type ManualClock } from '../../../../test/support/manual-clock.ts';
import { createSandboxTurns, OF_EVENTS, OF_REPORTS } from './sandbox-turns.ts';

let clock: ManualClock;
let began: string[];
let run: (workspace: string, ms: number, response?: ServerResponse) => Promise<unknown>;

/** A response whose client can disconnect. */
const openResponse = () => new EventEmitter() as ServerResponse;

beforeEach(() => {
  clock = createManualClock();
  began = [];
  run = runWith(OF_REPORTS);
});

function runWith(options: typeof OF_REPORTS): typeof run {
  const turns = createSandboxTurns(options, 5_000, clock);
  return (workspace, ms, response = openResponse()) =>
    turns.run(workspace, response, async () => {
      began.push(`${workspace} ${clock.nowMs()}`);
      await new Promise<void>(resolve => clock.setTimer(resolve, ms));
      return 'read';
    });
}

test('a workspace has one report at a time, and uses a quarter of the time, without affecting others', async () => {
  const all = Promise.all([run('a', 100), run('a', 100), run('b', 10), run('a', 0)]);
  await clock.advance(1_000);
  expect(await all).toEqual(['read', 'read', 'read', 'read']);
  expect(began).toEqual(['a 0', 'b 0', 'a 400', 'a 800']);
  expect(clock.pendingTimers()).toBe(0);
});

test('no more than 16 requests wait, each of them for a limited time and until it is canceled', async () => {
  const gone = openResponse();
  const first = run('a', 20_000);
  await clock.advance(0);
  const waiting = Array.from({ length: 16 }, (_, i) => run('a', 0, i === 0 ? gone : undefined));
  expect(await run('a', 0)).toBe('full');
  gone.emit('close');
  await clock.advance(5_000);
  expect(new Set(await Promise.all(waiting))).toEqual(new Set(['aborted', 'late']));
  await clock.advance(15_000);
  expect(await first).toBe('read');
  const next = run('a', 0);
  await clock.advance(5_000);
  expect([await next, began]).toEqual(['read', ['a 0', 'a 25000']]);
});

test('a report that has failed gives back its turn', async () => {
  const turns = createSandboxTurns(OF_REPORTS, 5_000, clock);
  const failed = turns.run('a', openResponse(), () => Promise.reject(new Error('no Redis')));
  await expect(failed).rejects.toThrow('no Redis');
  const next = turns.run('a', openResponse(), async () => 'read');
  await clock.advance(0);
  expect(await next).toBe('read');
});

test('a workspace stores four events at a time, without a pause', async () => {
  run = runWith(OF_EVENTS);
  const all = Promise.all(Array.from({ length: 6 }, () => run('a', 100)).concat(run('b', 100)));
  // A single call starts in each iteration of the event loop.
  for (let i = 0; i < 3; i++) await clock.advance(0);
  await clock.advance(1_000);
  expect(new Set(await all)).toEqual(new Set(['read']));
  expect(began.toSorted()).toEqual(['a 0', 'a 0', 'a 0', 'a 0', 'a 100', 'a 100', 'b 0']);
  expect(clock.pendingTimers()).toBe(0);
});
