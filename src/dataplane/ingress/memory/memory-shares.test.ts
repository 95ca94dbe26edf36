import { describe, expect, test } from 'vitest';
import { computeShares, type StoredStream } from './memory-shares.ts';

const LIMITS = { memoryPressureRatio: 0.7, memoryStopRatio: 0.9, guaranteedBytes: 10 };
const MAX = 1_000;

function streamOf(account: string, bytes: number, queue = 'orders'): StoredStream {
  return { tenant: `ten_${account}`, queue, payer: `acc_${account}`, bytes };
}

/** Returns the names of the refused accounts. Each account has one stream. */
function refused(bytesOf: Readonly<Record<string, number>>, usedBytes: number): string[] {
  const streams = Object.entries(bytesOf).map(([account, bytes]) => streamOf(account, bytes));
  const shares = computeShares(streams, { usedBytes, maxBytes: MAX }, LIMITS);
  return Object.keys(bytesOf).filter((_, i) => shares.findExcess(streams[i] as StoredStream) !== undefined);
}

test('the largest account is refused first, and the next ones as the pressure rises', () => {
  // The share is 900 ÷ 4 = 225.
  const stored = { a: 400, b: 280, c: 10, d: 10 };
  expect(refused(stored, 700)).toEqual(['a']);
  expect(refused(stored, 750)).toEqual(['a']);
  expect(refused({ ...stored, c: 60, d: 60 }, 890)).toEqual(['a', 'b']);
});

test('never refuses an account within its share', () => {
  for (const used of [700, 750, 800, 850, 899]) {
    expect(refused({ a: used / 4, b: used / 4, c: used / 4, d: used / 4 }, used)).toEqual([]);
    expect(refused({ a: used - 225, b: 225 }, used)).toEqual(['a']);
  }
});

test('a single account can use all of the memory for events', () => {
  expect(refused({ a: 890 }, 899)).toEqual([]);
});

test('does not count memory that is not used by events', () => {
  // 600 of 800 are used for other data, which leaves 300 for events, or 150 for each account.
  expect(refused({ a: 140, b: 60 }, 800)).toEqual([]);
  expect(refused({ a: 170, b: 30 }, 800)).toEqual(['a']);
});

test('a share is never below the guaranteed minimum', () => {
  const many = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`n${i}`, 1]));
  // 900 ÷ 202 is less than 10.
  expect(refused({ ...many, a: 500, b: 10 }, 890)).toEqual(['a']);
  expect(refused({ ...many, a: 500, b: 11 }, 899)).toEqual(['a', 'b']);
});

describe('the account', () => {
  const memory = { usedBytes: 850, maxBytes: MAX };

  test('has one share for all of its workspaces', () => {
    const split = Array.from({ length: 20 }, (_, i) => ({ ...streamOf('a', 30), tenant: `ten_${i}` }));
    const shares = computeShares([...split, streamOf('b', 100)], memory, LIMITS);
    expect(shares.findExcess(split[0] as StoredStream)).toEqual({ storedBytes: 600, shareBytes: 375 });
    expect(shares.findExcess(streamOf('b', 100))).toBe(undefined);
  });

  test('is the workspace if there is no account', () => {
    const alone = (tenant: string, bytes: number) => ({ tenant, queue: 'orders', payer: '', bytes });
    const shares = computeShares([alone('ten_a', 700), alone('ten_b', 100)], memory, LIMITS);
    expect(shares.findExcess(alone('ten_a', 700))).toBeDefined();
    expect(shares.findExcess(alone('ten_b', 100))).toBe(undefined);
  });
});

describe('stored bytes that were recorded earlier', () => {
  const noted = [streamOf('a', 5), streamOf('b', 600), streamOf('b', 50, 'invoices')];
  const shares = computeShares(noted, { usedBytes: 850, maxBytes: MAX }, LIMITS);

  test('do not protect a stream that has grown since then', () => {
    expect(shares.findExcess(streamOf('a', 700))).toMatchObject({ storedBytes: 700 });
    expect(shares.findExcess(streamOf('new', 700))).toMatchObject({ storedBytes: 700 });
  });

  test('do not refuse a stream whose events have expired since then', () => {
    expect(shares.findExcess(streamOf('b', 20))).toBe(undefined);
  });

  test('can be the rounded bytes of the stream', () => {
    const rounded = computeShares([streamOf('a', 630), streamOf('b', 10)], { usedBytes: 700, maxBytes: MAX }, LIMITS);
    expect(rounded.findExcess(streamOf('a', 610))).toBeDefined();
    expect(rounded.findExcess(streamOf('a', 590))).toBe(undefined);
  });
});
