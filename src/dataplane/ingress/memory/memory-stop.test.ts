import { expect, test } from 'vitest';
import { createLogger } from '../../../telemetry/log.ts';
import { INGRESS_LIMITS } from '../limits.ts';
import { createMemoryStop, type MemorySource } from './memory-stop.ts';

const info = (used: number, max: number) =>
  `# Memory\r\nused_memory:${used}\r\nused_memory_human:1M\r\nmaxmemory:${max}\r\n`;
const percent = (used: number) => info(used, 100);

type Stored = Awaited<ReturnType<MemorySource['readStored']>>;

/** Returns the stream `queue` of the only workspace of an account. The master is the first character of its name. */
const stream = (queue: string, bytes: number, payer = `acc_${queue}`) => ({
  tenant: 'ten_a',
  queue,
  payer,
  bytes,
  master: queue[0] as string,
});

/**
 * Returns a memory stop with a manual timer, and masters 0, 1, and 2 that return `says.masters`, which can be promises.
 */
function start() {
  const says: { masters: unknown[]; stored: () => Promise<Stored> } = {
    masters: [percent(0)],
    stored: async () => [],
  };
  const asked: string[] = [];
  const clock = { ms: 0 };
  const failures: unknown[] = [];
  const timers = new Map<() => void, number>();
  const stop = createMemoryStop({
    source: {
      masters: () =>
        says.masters.map((reply, i) => ({
          name: String(i),
          readMemory: async () => {
            if (i === 0) asked.push('masters');
            return reply;
          },
        })),
      readStored: () => {
        asked.push('stored');
        return says.stored();
      },
      masterOf: (_tenant, queue) => queue[0] as string,
    },
    limits: { ...INGRESS_LIMITS, guaranteedBytes: 2 },
    monotonicMs: () => clock.ms,
    log: createLogger({ level: 'silent' }),
    onFailure: (_operation, error) => failures.push(error),
    repeat: (run, everyMs) => {
      timers.set(run, everyMs);
      return () => timers.delete(run);
    },
  });
  /** Starts a check and waits until it ends, unless it does not end. */
  async function pass(): Promise<void> {
    for (const run of timers.keys()) run();
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  }
  async function seen(...masters: unknown[]): Promise<boolean> {
    says.masters = masters;
    await pass();
    return stop.isFull();
  }
  return { stop, says, asked, clock, failures, timers, pass, seen };
}

test('checks immediately, and then every second until it is stopped', async () => {
  const { stop, says, asked, timers, pass } = start();
  says.masters = [percent(90)];
  expect(stop.isFull()).toBe(false);
  await stop.start();
  expect(stop.isFull()).toBe(true);
  expect([...timers.values()]).toEqual([1_000]);
  await pass();
  expect(asked).toEqual(['masters', 'stored', 'masters', 'stored']);
  stop.stop();
  expect(timers.size).toBe(0);
});

test('is full from 82 %, and not full below 77 %', async () => {
  const { stop, seen } = start();
  await stop.start();
  const steps: [used: number, full: boolean][] = [
    [81, false],
    [82, true],
    [81, true],
    [77, true],
    [76, false],
    [81, false],
    [100, true],
    [120, true],
    [0, false],
  ];
  for (const [used, full] of steps) expect([used, await seen(percent(used))]).toEqual([used, full]);
});

test('uses the fullest of all masters', async () => {
  const { stop, seen } = start();
  await stop.start();
  expect(await seen(percent(10), percent(86), percent(10))).toBe(true);
  expect(stop.refusalOf(stream('1x', 0))).toBe('full');
  expect(stop.refusalOf(stream('0x', 0))).toBe(undefined);
  expect(await seen(percent(81), percent(81), percent(10))).toBe(true);
  expect(stop.refusalOf(stream('0x', 0))).toBe(undefined);
  expect(await seen(percent(76), percent(76), percent(76))).toBe(false);
});

test('only reads stored bytes above 70 %', async () => {
  const { stop, asked, seen } = start();
  await stop.start();
  await seen(percent(69), percent(10));
  expect(asked).toEqual(['masters', 'masters']);
  await seen(percent(10), percent(70));
  expect(asked).toEqual(['masters', 'masters', 'masters', 'stored']);
});

test('only refuses accounts above their share of that master, even if they were not recorded', async () => {
  const { stop, says, seen } = start();
  says.stored = async () => [stream('0flood', 60), stream('0small', 2), stream('1other', 60)];
  await stop.start();
  await seen(percent(69), percent(10));
  expect(stop.refusalOf(stream('0flood', 60))).toBe(undefined);
  await seen(percent(80), percent(10));
  expect(stop.refusalOf(stream('0flood', 60))).toEqual({ storedBytes: 60, shareBytes: 32 });
  expect(stop.refusalOf(stream('0small', 2))).toBe(undefined);
  expect(stop.refusalOf(stream('1other', 60))).toBe(undefined);
  expect(stop.refusalOf(stream('0new', 60))).toEqual({ storedBytes: 60, shareBytes: 32 });
  expect(stop.refusalOf(stream('0new', 2))).toBe(undefined);
  await seen(percent(60), percent(80));
  expect(stop.refusalOf(stream('0flood', 60))).toBe(undefined);
});

test('uses stored bytes for an hour if they cannot be read anymore, and reports the failure once', async () => {
  const { stop, says, clock, failures, seen } = start();
  says.stored = async () => [stream('0flood', 60), stream('0small', 2)];
  await stop.start();
  await seen(percent(80));
  says.stored = async () => Promise.reject(new Error('unavailable'));
  clock.ms = 3_600_000;
  await seen(percent(80));
  expect(stop.refusalOf(stream('0flood', 60))).toBeDefined();
  clock.ms = 3_600_001;
  await seen(percent(80));
  expect(stop.refusalOf(stream('0flood', 60))).toBe(undefined);
  expect(failures).toHaveLength(1);
  // The memory is still known.
  expect(await seen(percent(90))).toBe(true);
});

test('a master without a limit is never full', async () => {
  const { stop, seen } = start();
  await stop.start();
  expect(await seen(info(1e12, 0))).toBe(false);
  expect(await seen(info(1e12, 0), percent(90))).toBe(true);
});

const failure = () => {
  const failed = Promise.reject(new Error('unavailable'));
  failed.catch(() => {});
  return failed;
};

test.each([
  ['a failure', () => [failure()]],
  ['a response without its fields', () => ['# Memory\r\nused_memory_human:1M\r\n']],
  ['no response', () => [null]],
  ['no master', () => []],
])('%s does not change anything, and is reported once', async (_what, answer) => {
  const { stop, says, failures, pass, seen } = start();
  await stop.start();
  for (const used of [50, 90]) {
    const before = await seen(percent(used));
    expect(before).toBe(used === 90);
    says.masters = answer();
    await pass();
    await pass();
    expect(stop.isFull()).toBe(before);
  }
  expect(failures).toHaveLength(2);
  expect(await seen(percent(50))).toBe(false);
});

test.each([
  ['fails', failure],
  ['does not respond', () => new Promise(() => {})],
])('a master that %s keeps its state, and does not delay the others', async (_what, answer) => {
  const { stop, says, seen } = start();
  says.stored = async () => [stream('1flood', 60), stream('1small', 2), stream('2flood', 60)];
  await stop.start();
  await seen(percent(90), percent(10), percent(90));
  await seen(answer(), percent(80), percent(50));
  await seen(answer(), percent(90), percent(50));
  expect(stop.refusalOf(stream('0x', 0))).toBe('full');
  expect(stop.refusalOf(stream('1x', 0))).toBe('full');
  expect(stop.refusalOf(stream('2flood', 60))).toBe(undefined);
  await seen(answer(), percent(76), percent(50));
  expect(stop.refusalOf(stream('1x', 0))).toBe(undefined);
  expect(stop.refusalOf(stream('1flood', 60))).toBeDefined();
});

test('reading stored bytes slowly does not delay the check of the memory', async () => {
  const { stop, says, seen } = start();
  await stop.start();
  says.stored = () => new Promise(() => {});
  await seen(percent(75), percent(75));
  await seen(percent(90), percent(75));
  expect(stop.refusalOf(stream('0x', 0))).toBe('full');
  await seen(percent(50), percent(90));
  expect([stop.refusalOf(stream('0x', 0)), stop.refusalOf(stream('1x', 0))]).toEqual([undefined, 'full']);
});

test('removes a master that is not listed anymore', async () => {
  const { stop, seen } = start();
  await stop.start();
  expect(await seen(percent(10), percent(90))).toBe(true);
  expect(await seen(percent(10))).toBe(false);
});

test('a check that does not end is not started again, and is used when it ends', async () => {
  const { stop, says, asked, pass } = start();
  await stop.start();
  const answer = Promise.withResolvers<unknown>();
  says.masters = [answer.promise];
  await pass();
  await pass();
  const checks = () => asked.filter(each => each === 'masters');
  expect(checks()).toHaveLength(2);
  answer.resolve(percent(90));
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  expect(stop.isFull()).toBe(true);
  await pass();
  expect(checks()).toHaveLength(3);
});
