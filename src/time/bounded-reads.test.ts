import { beforeEach, expect, test } from 'vitest';
import { createManualClock, type ManualClock } from '../../test/support/manual-clock.ts';
import { createBoundedReads } from './bounded-reads.ts';

/** A read that has started, with functions that end it. */
interface Started {
  readonly name: string;
  readonly signal: AbortSignal;
  readonly end: (value: string) => void;
  readonly fail: (error: Error) => void;
}

let clock: ManualClock;
let started: Started[];
let read: (name: string, group?: string) => Promise<string>;

beforeEach(() => {
  clock = createManualClock();
  started = [];
  const reads = createBoundedReads<string>({ timeoutMs: 5_000, entries: 10, clock });
  read = async (name, group = 'g') => {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const run = (signal: AbortSignal) => {
      started.push({ name, signal, end: resolve, fail: reject });
      return promise;
    };
    return reads.read(name, group, run).catch((error: Error) => error.message);
  };
});

const LATE = 'no answer within 5000 ms';
const names = () => started.map(({ name }) => name);

test('without a response, all calls that wait are refused in time, and only the first one has been made', async () => {
  const first = read('a');
  await clock.advance(4_000);
  const waiting = [read('a'), read('a')];
  const other = read('b');
  await clock.advance(1_000);
  expect(await Promise.all([first, ...waiting])).toEqual([LATE, 'silent', 'silent']);
  expect([names(), started[0]?.signal.aborted]).toEqual([['a', 'b'], true]);
  await clock.advance(4_000);
  expect([await other, clock.pendingTimers()]).toEqual([LATE, 0]);
});

test('a silent group is read once at a time until it responds, without affecting other groups', async () => {
  const first = read('a');
  await clock.advance(5_000);
  expect(await first).toBe(LATE);
  const probe = read('b');
  expect(await Promise.all([read('a'), read('b')])).toEqual(['silent', 'silent']);
  const other = read('x', 'another');
  started.at(-1)?.end('of another');
  expect([names(), await other]).toEqual([['a', 'b', 'x'], 'of another']);
  started[1]?.end('back');
  expect(await probe).toBe('back');
  const both = [read('a'), read('b')];
  for (const each of started.slice(3)) each.end('again');
  expect(await Promise.all(both)).toEqual(['again', 'again']);
});

test('a read that fails late makes its group silent, and one that fails early does not', async () => {
  for (const [ms, next] of [
    [2_499, 'read'],
    [2_500, 'silent'],
  ] as const) {
    const failing = read('a');
    await clock.advance(ms);
    started.at(-1)?.fail(new Error('no connection'));
    expect(await failing).toBe('no connection');
    const [probe, second] = [read('a'), read('b')];
    for (const each of started.slice(-2)) each.end('read');
    expect([ms, await probe, await second]).toEqual([ms, 'read', next]);
  }
});
