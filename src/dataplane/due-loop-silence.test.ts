import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { HintIndex } from '../hints/hints.ts';
import { hintPartition } from '../redis/keys.ts';
import { createLogger } from '../telemetry/log.ts';
import { createDueLoop } from './due-loop.ts';
import { createMemoryHints } from './testing/memory-hints.ts';

/** The timeout of a Redis client, in milliseconds. */
const COMMAND_MS = 5_000;

beforeEach(() => {
  vi.useFakeTimers({ now: Date.parse('2026-01-01T00:00:00Z') });
});
afterEach(() => {
  vi.useRealTimers();
});

const later = (ms: number) => vi.advanceTimersByTimeAsync(ms);

/** A loop with a single place. There are no responses for partitions in `silent`. */
function start(run: (member: string) => Promise<null>) {
  const { hints, due, tokens } = createMemoryHints();
  const silent = new Set<number>();
  const pick: HintIndex['pick'] = async (partition, ...args) => {
    if (!silent.has(partition)) return hints.pick(partition, ...args);
    await new Promise(resolve => setTimeout(resolve, COMMAND_MS));
    throw new Error('no answer');
  };
  const ran: string[] = [];
  let turn = 0;
  const loop = createDueLoop({
    hints: { ...hints, pick: (...call) => pick(...call) },
    nowMs: Date.now,
    log: createLogger({ level: 'silent' }),
    concurrency: 1,
    leaseMs: 20_000,
    token: () => `t${turn++}`,
    run: member => {
      ran.push(member);
      return run(member);
    },
  });
  const lower = (member: string) => hints.lower([{ member, dueMs: Date.now() }]);
  return { loop, hints, ran, due, tokens, silent, lower };
}

test('partitions that do not respond do not use places of others', async () => {
  const { loop, ran, silent, lower } = start(async () => null);
  for (let p = 0; p < 16; p++) if (p !== hintPartition('m')) silent.add(p);
  loop.start();
  await later(10_000);
  for (let n = 1; n <= 30; n++) {
    await lower('m');
    await later(1_000);
    expect(ran).toHaveLength(n);
  }
  silent.clear();
  const other = ['a', 'b', 'c'].find(member => hintPartition(member) !== hintPartition('m')) as string;
  await lower(other);
  await later(COMMAND_MS + 250);
  expect(ran.at(-1)).toBe(other);
  await loop.stop();
});

test('work that was picked after the last place was taken is returned immediately', async () => {
  const ends: (() => void)[] = [];
  const { loop, hints, ran, due, tokens, lower } = start(
    () => new Promise(resolve => void ends.push(() => resolve(null))),
  );
  const [first = '', second = ''] = ['a', 'b', 'c', 'd'].filter(
    (member, i, all) => i === 0 || hintPartition(member) !== hintPartition(all[0] as string),
  );
  const { pick } = hints;
  const answered = Promise.withResolvers<void>();
  let isLate = true;
  Object.assign(hints, {
    pick: async (...[partition, ...args]: Parameters<typeof pick>) => {
      const found = await pick(partition, ...args);
      if (isLate && found.members.includes(first)) await answered.promise;
      return found;
    },
  });
  loop.start();
  await lower(first);
  await later(1_000);
  await lower(second);
  await later(100);
  expect(ran).toEqual([second]);
  isLate = false;
  answered.resolve();
  await later(100);
  expect(ran).toEqual([second]);
  expect(tokens.has(first)).toBe(false);
  expect(due.get(first)).toBeLessThanOrEqual(Date.now());
  ends.shift()?.();
  await later(100);
  expect(ran).toEqual([second, first]);
  ends.shift()?.();
  await loop.stop();
});
