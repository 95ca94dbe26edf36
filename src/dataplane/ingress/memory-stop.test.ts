import { expect, test } from 'vitest';
import { createLogger } from '../../telemetry/log.ts';
import { INGRESS_LIMITS } from './limits.ts';
import { createMemoryStop } from './memory-stop.ts';

const info = (used: number, max: number) =>
  `# Memory\r\nused_memory:${used}\r\nused_memory_human:1M\r\nmaxmemory:${max}\r\n`;
const percent = (used: number) => info(used, 100);

/** A stop whose time passes when the test says so, with masters that answer `says.masters`. */
function start() {
  const says: { masters: unknown[] | Promise<unknown[]> } = { masters: [percent(0)] };
  const asked: string[][] = [];
  const failures: unknown[] = [];
  const timers = new Map<() => void, number>();
  const stop = createMemoryStop({
    askMasters: async (...command) => {
      asked.push(command);
      return says.masters;
    },
    limits: INGRESS_LIMITS,
    log: createLogger({ level: 'silent' }),
    onFailure: (_operation, error) => failures.push(error),
    repeat: (run, everyMs) => {
      timers.set(run, everyMs);
      return () => timers.delete(run);
    },
  });
  /** The time of a look comes, and it ends unless it hangs. */
  async function pass(): Promise<void> {
    for (const run of timers.keys()) run();
    for (let turn = 0; turn < 10; turn++) await Promise.resolve();
  }
  async function seen(...masters: unknown[]): Promise<boolean> {
    says.masters = masters;
    await pass();
    return stop.isFull();
  }
  return { stop, says, asked, failures, timers, pass, seen };
}

test('looks at once, then every 2 s until it is stopped', async () => {
  const { stop, says, asked, timers, pass } = start();
  says.masters = [percent(90)];
  expect(stop.isFull()).toBe(false);
  await stop.start();
  expect(stop.isFull()).toBe(true);
  expect([...timers.values()]).toEqual([2_000]);
  await pass();
  expect(asked).toEqual([
    ['INFO', 'memory'],
    ['INFO', 'memory'],
  ]);
  stop.stop();
  expect(timers.size).toBe(0);
});

test('is full from 85 % on, and not any more below 80 %', async () => {
  const { stop, seen } = start();
  await stop.start();
  const steps: [used: number, full: boolean][] = [
    [84, false],
    [85, true],
    [84, true],
    [80, true],
    [79, false],
    [84, false],
    [100, true],
    [120, true],
    [0, false],
  ];
  for (const [used, full] of steps) expect([used, await seen(percent(used))]).toEqual([used, full]);
});

test('the fullest of all masters counts', async () => {
  const { stop, seen } = start();
  await stop.start();
  expect(await seen(percent(10), percent(86), percent(10))).toBe(true);
  expect(await seen(percent(81), percent(10), percent(10))).toBe(true);
  expect(await seen(percent(79), percent(79), percent(79))).toBe(false);
});

test('a master without a limit is never full', async () => {
  const { stop, seen } = start();
  await stop.start();
  expect(await seen(info(1e12, 0))).toBe(false);
  expect(await seen(info(1e12, 0), percent(90))).toBe(true);
});

test.each([
  ['a failure', () => Promise.reject(new Error('away'))],
  ['an answer without its fields', () => Promise.resolve(['# Memory\r\nused_memory_human:1M\r\n'])],
  ['an answer of one master alone', () => Promise.resolve([percent(50), ''])],
  ['no answer', () => Promise.resolve([null])],
  ['no master', () => Promise.resolve([])],
])('%s changes nothing, and is told once', async (_what, answer) => {
  const { stop, says, failures, pass, seen } = start();
  const break_ = () => {
    says.masters = answer();
    says.masters.catch(() => {});
  };
  await stop.start();
  for (const used of [50, 90]) {
    const before = await seen(percent(used));
    expect(before).toBe(used === 90);
    break_();
    await pass();
    await pass();
    expect(stop.isFull()).toBe(before);
  }
  expect(failures).toHaveLength(2);
  expect(await seen(percent(50))).toBe(false);
});

test('a look that hangs is not joined by others, and counts when it ends', async () => {
  const { stop, says, asked, pass } = start();
  await stop.start();
  let answer = (_masters: unknown[]) => {};
  says.masters = new Promise(resolve => {
    answer = resolve;
  });
  await pass();
  await pass();
  expect(asked).toHaveLength(2);
  answer([percent(90)]);
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
  expect(stop.isFull()).toBe(true);
  await pass();
  expect(asked).toHaveLength(3);
});
