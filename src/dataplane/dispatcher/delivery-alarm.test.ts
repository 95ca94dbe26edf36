import { expect, test } from 'vitest';
import type { DeliveryNote } from '../../plane/delivery-news.ts';
import { createDeliveryAlarm } from './delivery-alarm.ts';

const WELL: DeliveryNote = { trouble: '- 0', backlog: '0' };
const FAILS: DeliveryNote = { trouble: 'HttpError 0', backlog: '0' };
const WAITS: DeliveryNote = { trouble: '- 0', backlog: '1' };

/** An alarm with a manual clock. `raised` contains `ms member`. */
function start() {
  let now = 0;
  const timers = new Set<{ atMs: number; run: () => void }>();
  const raised: string[] = [];
  const alarm = createDeliveryAlarm({
    raise: member => raised.push(`${now} ${member}`),
    monotonicMs: () => now,
    setTimer: (run, delayMs) => {
      const timer = { atMs: now + delayMs, run };
      timers.add(timer);
      return () => timers.delete(timer);
    },
  });
  function advance(ms: number): void {
    const untilMs = now + ms;
    for (;;) {
      const next = [...timers].filter(({ atMs }) => atMs <= untilMs).toSorted((a, b) => a.atMs - b.atMs)[0];
      if (next === undefined) break;
      timers.delete(next);
      now = next.atMs;
      next.run();
    }
    now = untilMs;
  }
  return { alarm, raised, advance, timers };
}

test('reports a problem immediately, and then every ten seconds, including the last change', () => {
  const { alarm, raised, advance } = start();
  alarm.note('x', { before: WELL, now: FAILS });
  expect(raised).toEqual(['0 x']);
  for (let i = 0; i < 50; i++) {
    advance(100);
    alarm.note('x', i % 2 === 0 ? { before: FAILS, now: WELL } : { before: WELL, now: FAILS });
  }
  alarm.note('x', { before: FAILS, now: { trouble: 'Timeout 0', backlog: '0' } });
  advance(60_000);
  expect(raised).toEqual(['0 x', '10000 x']);
});

test('does not report a change that was undone', () => {
  const { alarm, raised, advance, timers } = start();
  alarm.note('x', { before: WELL, now: FAILS });
  advance(1_000);
  alarm.note('x', { before: FAILS, now: WELL });
  alarm.note('x', { before: WELL, now: FAILS });
  expect(timers.size).toBe(0);
  advance(60_000);
  expect(raised).toEqual(['0 x']);
});

test('reports a backlog after ten seconds, or after a minute if it keeps changing', () => {
  const { alarm, raised, advance } = start();
  alarm.note('calm', { before: WELL, now: WAITS });
  advance(9_999);
  expect(raised).toEqual([]);
  advance(1);
  expect(raised).toEqual(['10000 calm']);
  for (let i = 0; i < 15; i++) {
    const [before, now] = ['2', '3'].map(backlog => ({ trouble: '- 0', backlog })) as [DeliveryNote, DeliveryNote];
    alarm.note('restless', i % 2 === 0 ? { before, now } : { before: now, now: before });
    advance(5_000);
  }
  expect(raised).toEqual(['10000 calm', '70000 restless']);
});

test('problems and backlogs do not delay each other', () => {
  const { alarm, raised, advance } = start();
  alarm.note('x', { before: WELL, now: WAITS });
  advance(500);
  alarm.note('x', { before: WAITS, now: { trouble: 'HttpError 0', backlog: '1' } });
  expect(raised).toEqual(['500 x']);
  advance(9_000);
  alarm.note('x', { before: { trouble: 'HttpError 0', backlog: '1' }, now: { trouble: 'Timeout 0', backlog: '1' } });
  alarm.note('x', { before: { trouble: 'Timeout 0', backlog: '1' }, now: { trouble: 'Timeout 0', backlog: '2' } });
  advance(1_000);
  expect(raised).toEqual(['500 x', '10500 x']);
});

test('reports the first dead letter of an hour even if nothing else has changed', () => {
  const { alarm, raised, advance } = start();
  const dead = { trouble: 'HttpError 1', backlog: '0' };
  alarm.note('x', { before: WELL, now: dead });
  advance(3_600_000);
  alarm.note('x', { before: dead, now: dead });
  expect(raised).toEqual(['0 x', '3600000 x']);
});

test('reports again if another dispatcher may have reported a different state', () => {
  const { alarm, raised, advance } = start();
  alarm.note('x', { before: WELL, now: FAILS });
  advance(20_000);
  // Another dispatcher has recorded and reported that the endpoint works. Now it fails again.
  alarm.note('x', { before: { trouble: 'Succeeded 0', backlog: '0' }, now: FAILS });
  expect(raised).toEqual(['0 x', '20000 x']);
});

test('uses a separate time for each subscription, and reports pending changes at the end', () => {
  const { alarm, raised } = start();
  alarm.note('x', { before: WELL, now: WAITS });
  alarm.note('y', { before: WELL, now: FAILS });
  alarm.note('z', { before: WELL, now: WAITS });
  alarm.flush();
  expect(raised).toEqual(['0 y', '0 x', '0 z']);
  alarm.flush();
  expect(raised).toHaveLength(3);
});

test('reports all changes even if there are more subscriptions than can be remembered', () => {
  const { alarm, raised, timers } = start();
  for (let n = 0; n < 20_005; n++) alarm.note(`s${n}`, { before: WELL, now: WAITS });
  expect(raised).toEqual(['0 s0', '0 s1', '0 s2', '0 s3', '0 s4']);
  expect(timers.size).toBe(20_000);
});
