import type { RedisServer } from '../support/redis/server.ts';
import { sendCommand } from './commands.ts';
import type { Fleet } from './fleet.ts';
import { readCpuSeconds } from './process-cpu.ts';
import type { OpenLoop, Sent } from './producer.ts';
import type { Expectation, Received, Sickness } from './receiver.ts';
import { quantile } from './report/statistics.ts';
import type { Pipe } from './variants.ts';

/** The number of connections of the generator. Divides the number of group keys. */
export const CONNECTIONS = 50;
/** A rate is held if all events have arrived within this time after the last planned send. */
const DRAIN_MS = 1_000;
/** The time to wait for missing events. Events that have not arrived after this time count as lost. */
const PATIENCE_MS = 15_000;
/** The time to wait for duplicates after the last expected event. */
const GRACE_MS = 30;

/** The result of an open-loop run. Times are in ms, from the planned send to the arrival at the endpoint. */
export interface PipeRun {
  readonly pipe: Pipe['name'];
  readonly endpoints: number;
  readonly rate: number;
  readonly held: boolean;
  /** The number of expected deliveries. */
  readonly expected: number;
  readonly drainMs: number;
  /** Deliveries per second, from the first planned send to the last arrival. */
  readonly deliveredPerSecond: number;
  readonly refused: number;
  readonly missing: number;
  readonly duplicates: number;
  readonly outOfOrder: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly acceptP50Ms: number;
  readonly acceptP99Ms: number;
  /** The time from the 202 to the arrival, or 0 if the event arrived first. Only present if `timed` is set. */
  readonly afterAccept?: { readonly p50Ms: number; readonly p99Ms: number };
  /** CPU seconds used by the processes of the pipe and by its Redis, per 1,000 deliveries. */
  readonly cpuPerThousand: number;
  readonly redisCpuPerThousand: number;
  readonly commandsPerDelivery: number;
  /** The increase in `used_memory`, divided by the number of events. */
  readonly bytesPerEvent: number;
}

let lastRun = 0;

/** Returns the number of a new run. */
export const nextRun = (): number => ++lastRun;

/** Returns `used_memory` in bytes. */
export async function usedMemory(redis: RedisServer): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(String(await redis.command('INFO', 'memory')))?.[1]);
}

function afterAccept({ answeredUs = [] }: Sent, { arrivedUs = [] }: Received) {
  // Missing events are null in JSON. The run fails because of them.
  const times = arrivedUs.flatMap(arrivals =>
    arrivals.flatMap((at: number | null, n) => {
      const answered: number | null | undefined = answeredUs[n];
      return at === null || typeof answered !== 'number' ? [] : [Math.max(0, at - answered)];
    }),
  );
  return { p50Ms: quantile(times, 0.5) / 1_000, p99Ms: quantile(times, 0.99) / 1_000 };
}

/**
 * Sends `count` evenly spaced events at a rate of `rate` per second, and waits until they have arrived at all
 * endpoints.
 */
export async function runPipe(
  fleet: Fleet,
  pipe: Pipe,
  load: {
    endpoints: number;
    rate: number;
    count: number;
    /** The number of endpoints, from the first one, whose latency is measured. Default: all. */
    observed?: number;
    /** The sicknesses of the last endpoints. */
    sick?: readonly Sickness[];
    /** The number of further subscriptions without an active group key. Default: 0. Sluice only. */
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
