import type { RedisServer } from '../support/redis/server.ts';
import { sendCommand } from './commands.ts';
import type { Fleet } from './fleet.ts';
import { readCpuSeconds } from './process-cpu.ts';
import type { OpenLoop, Sent } from './producer.ts';
import type { Expectation, Received, Sickness } from './receiver.ts';
import { quantile } from './report/statistics.ts';
import type { Pipe } from './variants.ts';

/** Connections of the generator; it divides the number of group keys. */
export const CONNECTIONS = 50;
/** A rate is held when everything has arrived so soon after the last planned send. */
const DRAIN_MS = 1_000;
/** How long what is missing then is waited for, to tell late from lost. */
const PATIENCE_MS = 15_000;
/** How long after the last expected event another copy of one may come. */
const GRACE_MS = 30;

/** One open-loop run through a pipe. Times in ms, from the planned send to the arrival at the endpoint. */
export interface PipeRun {
  readonly pipe: Pipe['name'];
  readonly endpoints: number;
  readonly rate: number;
  readonly held: boolean;
  /** Deliveries that had to come. */
  readonly expected: number;
  readonly drainMs: number;
  /** Deliveries a second, from the first planned send to the last arrival. */
  readonly deliveredPerSecond: number;
  readonly refused: number;
  readonly missing: number;
  readonly duplicates: number;
  readonly outOfOrder: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly acceptP50Ms: number;
  readonly acceptP99Ms: number;
  /** From the 202 to the arrival, 0 where the event arrived first. Set if asked for. */
  readonly afterAccept?: { readonly p50Ms: number; readonly p99Ms: number };
  /** CPU seconds of the pipe's processes, and of its Redis, per 1,000 deliveries. */
  readonly cpuPerThousand: number;
  readonly redisCpuPerThousand: number;
  readonly commandsPerDelivery: number;
  /** `used_memory` after delivery less before, by events. */
  readonly bytesPerEvent: number;
}

let lastRun = 0;

/** Returns the number of a run of its own. */
export const nextRun = (): number => ++lastRun;

/** Returns `used_memory` of a Redis, in bytes. */
export async function usedMemory(redis: RedisServer): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(String(await redis.command('INFO', 'memory')))?.[1]);
}

function afterAccept({ answeredUs = [] }: Sent, { arrivedUs = [] }: Received) {
  // JSON has null for events that are missing. The run fails because of them, and they have no time.
  const times = arrivedUs.flatMap(arrivals =>
    arrivals.flatMap((at: number | null, n) => {
      const answered: number | null | undefined = answeredUs[n];
      return at === null || typeof answered !== 'number' ? [] : [Math.max(0, at - answered)];
    }),
  );
  return { p50Ms: quantile(times, 0.5) / 1_000, p99Ms: quantile(times, 0.99) / 1_000 };
}

/** Sends `count` events at `rate` a second (evenly spaced) to `endpoints` endpoints each, and waits for all of them. */
export async function runPipe(
  fleet: Fleet,
  pipe: Pipe,
  load: {
    endpoints: number;
    rate: number;
    count: number;
    /** Endpoints whose latency counts: the first ones; all when absent. */
    observed?: number;
    /** What the last of the endpoints suffer from, one each. */
    sick?: readonly Sickness[];
    /** Subscriptions of the stream besides, for which no group key is active; 0 when absent. Sluice only. */
    unmatched?: number;
    /** Whether to measure the time from the 202 to the arrival. */
    timed?: boolean;
  },
): Promise<PipeRun> {
  const { endpoints, rate, count } = load;
  const run = nextRun();
  const { sick = [], unmatched = 0, timed = false } = load;
  const target = await pipe.prepare(endpoints, sick, unmatched);
  const expectation: Expectation = {
    run,
    events: count,
    endpoints,
    observed: load.observed ?? endpoints,
    sick,
    timed,
  };
  await sendCommand(fleet.receiver.controlPort, 'begin', expectation);
  const before = await Promise.all([
    readCpuSeconds(pipe.pids),
    readCpuSeconds([pipe.redis.pid]),
    pipe.readCommands(),
    usedMemory(pipe.redis),
  ]);
  // Servers close connections that send nothing for a while.
  const connections = rate < CONNECTIONS ? 1 : CONNECTIONS;
  const order: OpenLoop = { target, run, connections, rate, count, patienceMs: PATIENCE_MS, timed };
  const sent = await sendCommand<Sent>(fleet.producer.controlPort, 'open', order);
  const untilUs = sent.endUs + PATIENCE_MS * 1_000;
  const got = await sendCommand<Received>(fleet.receiver.controlPort, 'finish', { untilUs, graceMs: GRACE_MS });
  const after = await Promise.all([
    readCpuSeconds(pipe.pids),
    readCpuSeconds([pipe.redis.pid]),
    pipe.readCommands(),
    usedMemory(pipe.redis),
  ]);
  const [cpu, redisCpu, commands, bytes] = after.map((value, index) => value - (before[index] as number)) as [
    number,
    number,
    number,
    number,
  ];
  const drainMs = Math.max(0, (got.lastUs - sent.endUs) / 1_000);
  return {
    pipe: pipe.name,
    endpoints,
    rate,
    held: got.complete && sent.accepted === count && drainMs < DRAIN_MS,
    expected: got.expected,
    drainMs,
    deliveredPerSecond: got.unique / ((count - 1) / rate + drainMs / 1_000),
    refused: sent.refused,
    missing: got.expected - got.unique,
    duplicates: got.duplicates,
    outOfOrder: got.outOfOrder,
    p50Ms: got.p50Ms,
    p99Ms: got.p99Ms,
    acceptP50Ms: sent.p50Ms,
    acceptP99Ms: sent.p99Ms,
    ...(timed ? { afterAccept: afterAccept(sent, got) } : {}),
    cpuPerThousand: (cpu * 1_000) / got.unique,
    redisCpuPerThousand: (redisCpu * 1_000) / got.unique,
    commandsPerDelivery: commands / got.unique,
    bytesPerEvent: bytes / count,
  };
}
