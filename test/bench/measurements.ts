import { setTimeout as delay } from 'node:timers/promises';
import { sendCommand } from './commands.ts';
import type { Fleet } from './fleet.ts';
import type { Sent } from './producer.ts';
import { searchRate } from './rate-search.ts';
import type { Sickness } from './receiver.ts';
import { CONNECTIONS, type PipeRun, runPipe } from './run.ts';
import { emptyRedis, type Pipe } from './variants.ts';
import type { Target } from './wire.ts';

/** The duration and the number of measurements. */
export interface Effort {
  readonly rounds: number;
  readonly overloadRounds: number;
  readonly ingressRounds: number;
  readonly ingressMs: number;
  readonly probeMs: number;
  readonly latencyMs: number;
  readonly neighbourRounds: number;
  readonly neighbourMs: number;
  readonly memoryEvents: number;
  readonly lonelyEvents: number;
  readonly manyRounds: number;
}

export const SUBSCRIPTIONS = [1, 10] as const;
export type Subscriptions = (typeof SUBSCRIPTIONS)[number];

type Report = (line: string) => void;

/** Accepted requests per second of each variant, by round. */
export interface IngressRates {
  readonly bare: number[];
  readonly xadd: number[];
  readonly sluice: number[];
}

function plainTarget(port: number): Target {
  return { port, path: '/events', headers: {} };
}

/** Measures the variants in turn, so that other load on the machine affects all of them. The first round warms up. */
export async function measureIngress(
  fleet: Fleet,
  sluice: Target,
  { ingressRounds, ingressMs }: Effort,
  report: Report,
): Promise<IngressRates> {
  const targets = { bare: plainTarget(fleet.bare.port), xadd: plainTarget(fleet.xadd.port), sluice };
  const rates: IngressRates = { bare: [], xadd: [], sluice: [] };
  for (let round = 0; round <= ingressRounds; round++) {
    await emptyRedis(fleet.redis.xadd);
    for (const variant of ['bare', 'xadd', 'sluice'] as const) {
      const order = { target: targets[variant], run: 0, connections: CONNECTIONS, durationMs: ingressMs };
      const sent = await sendCommand<Sent>(fleet.producer.controlPort, 'closed', order);
      if (sent.refused > 0) throw new Error(`${variant} refused ${sent.refused} requests`);
      if (round > 0) rates[variant].push((sent.accepted * 1_000) / sent.elapsedMs);
    }
    if (round > 0)
      report(
        `ingress ${round}: ${Object.entries(rates)
          .map(([name, values]) => `${name} ${Math.round(values.at(-1) ?? 0)}/s`)
          .join(', ')}`,
      );
  }
  return rates;
}

/** The measurements of each round, by pipe and number of subscriptions. */
export type ByPipe<T> = Record<Pipe['name'], Record<Subscriptions, T[]>>;

export function byPipe<T>(): ByPipe<T> {
  return { sluice: { 1: [], 10: [] }, bullmq: { 1: [], 10: [] } };
}

const FIRST_RATE: Record<Subscriptions, number> = { 1: 1_500, 10: 250 };
/** The precision of the search: 5 %. */
const TOLERANCE = 1.05;
const MOST_PROBES = { first: 12, later: 6 };

/**
 * Searches for the highest rate held by each pipe, alternating between the pipes after each probe. Later rounds start
 * at the previous result. Calls `onRun` with each run.
 */
export async function searchCapacity(
  fleet: Fleet,
  pipes: readonly Pipe[],
  { rounds, probeMs }: Effort,
  onRun: (run: PipeRun) => void,
  report: Report,
): Promise<ByPipe<number>> {
  const found = byPipe<number>();
  for (let round = 0; round < rounds; round++) {
    for (const endpoints of SUBSCRIPTIONS) {
      const searches = pipes.map(pipe => {
        const previous = found[pipe.name][endpoints].at(-1);
        const search = searchRate({
          start: previous || FIRST_RATE[endpoints],
          step: previous ? 1.1 : 1.5,
          tolerance: TOLERANCE,
          mostProbes: previous ? MOST_PROBES.later : MOST_PROBES.first,
        });
        return { pipe, search };
      });
      for (let open = true; open; ) {
        open = false;
        for (const { pipe, search } of searches) {
          const rate = search.next();
          if (rate === undefined) continue;
          open = true;
          const run = await runPipe(fleet, pipe, { endpoints, rate, count: Math.round((rate * probeMs) / 1_000) });
          onRun(run);
          search.record(run.held);
        }
      }
      for (const { pipe, search } of searches) found[pipe.name][endpoints].push(search.held());
      report(
        `highest rate ${round + 1}, ${endpoints} subscription(s): ${searches.map(({ pipe, search }) => `${pipe.name} ${search.held()} events/s`).join(', ')}`,
      );
    }
  }
  return found;
}

/** The rate of an overload, as a multiple of the highest rate held by either pipe. */
const OVERLOAD = 1.5;

/**
 * Measures deliveries per second when both pipes get the same events at a rate that neither of them can hold. A pair of
 * runs only takes seconds, while a search takes minutes during which the machine must be idle.
 */
export async function measureOverload(
  fleet: Fleet,
  pipes: readonly Pipe[],
  highest: (endpoints: Subscriptions) => number,
  { overloadRounds, probeMs }: Effort,
  onRun: (run: PipeRun) => void,
  report: Report,
): Promise<ByPipe<PipeRun>> {
  const runs = byPipe<PipeRun>();
  for (let round = 0; round < overloadRounds; round++) {
    for (const endpoints of SUBSCRIPTIONS) {
      const rate = Math.round(highest(endpoints) * OVERLOAD);
      for (const pipe of round % 2 === 0 ? pipes : pipes.toReversed()) {
        const run = await runPipe(fleet, pipe, { endpoints, rate, count: Math.round((rate * probeMs) / 1_000) });
        onRun(run);
        runs[pipe.name][endpoints].push(run);
      }
    }
    report(`overload ${round + 1} of ${overloadRounds}`);
  }
  return runs;
}

/** Measures latency, CPU, and commands at the given rates, alternating between the pipes. */
export async function measureAt(
  fleet: Fleet,
  pipes: readonly Pipe[],
  rates: (endpoints: Subscriptions) => number,
  { rounds, latencyMs }: Effort,
  onRun: (run: PipeRun) => void,
  report: Report,
): Promise<ByPipe<PipeRun>> {
  const runs = byPipe<PipeRun>();
  for (let round = 0; round < rounds; round++) {
    for (const endpoints of SUBSCRIPTIONS) {
      for (const pipe of pipes) {
        const rate = Math.max(1, Math.round(rates(endpoints)));
        const count = Math.round((rate * latencyMs) / 1_000);
        const run = await runPipe(fleet, pipe, { endpoints, rate, count, timed: true });
        onRun(run);
        runs[pipe.name][endpoints].push(run);
      }
    }
    report(`latency ${round + 1} of ${rounds}`);
  }
  return runs;
}

/** Returns the bytes of Redis memory used by an event of 1 KiB after its delivery, by number of subscriptions. */
export async function measureMemory(
  fleet: Fleet,
  sluice: Pipe,
  rates: (endpoints: Subscriptions) => number,
  { memoryEvents }: Effort,
  onRun: (run: PipeRun) => void,
  report: Report,
): Promise<Record<Subscriptions, number>> {
  const bytes: Record<Subscriptions, number> = { 1: Number.NaN, 10: Number.NaN };
  for (const endpoints of SUBSCRIPTIONS) {
    const rate = Math.max(1, Math.round(rates(endpoints)));
    const run = await runPipe(fleet, sluice, { endpoints, rate, count: memoryEvents });
    onRun(run);
    bytes[endpoints] = run.bytesPerEvent;
  }
  report('memory');
  return bytes;
}

/** Commands for each event at 1 event per second, and commands per second without events. */
export interface Lonely {
  readonly perDelivery: number;
  readonly idlePerSecond: number;
}

/** The number of events before the measurement. The first events of a stream cause its owner to read it. */
const LONELY_BEFORE = 5;

/**
 * Measures the commands for each event at 1 event per second with one subscription, as the difference between a longer
 * and a shorter run. Heartbeats are counted separately.
 */
export async function measureLonely(
  fleet: Fleet,
  sluice: Pipe,
  { lonelyEvents }: Effort,
  onRun: (run: PipeRun) => void,
  report: Report,
): Promise<Lonely> {
  const commands: number[] = [];
  for (const count of [LONELY_BEFORE, LONELY_BEFORE + lonelyEvents]) {
    const run = await runPipe(fleet, sluice, { endpoints: 1, rate: 1, count });
    onRun(run);
    commands.push(run.commandsPerDelivery * run.expected);
  }
  const before = await sluice.readCommands();
  await delay(lonelyEvents * 1_000);
  const idle = (await sluice.readCommands()) - before;
  report('lonely');
  const [shorter = 0, longer = 0] = commands;
  return { perDelivery: (longer - shorter - idle) / lonelyEvents, idlePerSecond: idle / lonelyEvents };
}

/** The numbers of subscriptions to the stream. Only one of them matches the events. */
const MANY = [1, 1_000, 10_000];

/** Measures deliveries per second in an overload if most subscriptions to the stream do not match. */
export async function measureMany(
  fleet: Fleet,
  sluice: Pipe,
  rate: number,
  { manyRounds, probeMs }: Effort,
  onRun: (run: PipeRun) => void,
  report: Report,
): Promise<Record<number, PipeRun[]>> {
  const runs: Record<number, PipeRun[]> = Object.fromEntries(MANY.map(k => [k, []]));
  const load = { endpoints: 1, rate: Math.round(rate), count: Math.round((rate * probeMs) / 1_000) };
  for (let round = 0; round < manyRounds; round++) {
    for (const k of round % 2 === 0 ? MANY : MANY.toReversed()) {
      const run = await runPipe(fleet, sluice, { ...load, unmatched: k - 1 });
      onRun(run);
      runs[k]?.push(run);
    }
    report(`many subscriptions ${round + 1} of ${manyRounds}`);
  }
  return runs;
}

export interface Neighbour {
  readonly alone: PipeRun[];
  readonly beside: PipeRun[];
}

/** The number of endpoints, and the sicknesses of the last ones. */
export interface Neighbourhood {
  readonly endpoints: number;
  readonly sick: readonly Sickness[];
}

export const ONE_HANGS: Neighbourhood = { endpoints: 10, sick: ['hangs'] };
export const THREE_ARE_SICK: Neighbourhood = { endpoints: 50, sick: ['hangs', 'dead', 'resets'] };

/** Measures the p99 of the healthy endpoints, alternating between runs where the others are healthy and sick. */
export async function measureNeighbour(
  fleet: Fleet,
  sluice: Pipe,
  { endpoints, sick }: Neighbourhood,
  rate: number,
  { neighbourRounds, neighbourMs }: Effort,
  onRun: (run: PipeRun) => void,
  report: Report,
): Promise<Neighbour> {
  const runs: Neighbour = { alone: [], beside: [] };
  for (let round = 0; round < neighbourRounds; round++) {
    for (const beside of round % 2 === 0 ? [false, true] : [true, false]) {
      const load = {
        endpoints,
        rate: Math.max(1, Math.round(rate)),
        count: Math.round((rate * neighbourMs) / 1_000),
      };
      const observed = endpoints - sick.length;
      const run = await runPipe(fleet, sluice, { ...load, observed, ...(beside ? { sick } : {}) });
      onRun(run);
      runs[beside ? 'beside' : 'alone'].push(run);
    }
    report(`neighbour of ${endpoints}, ${round + 1} of ${neighbourRounds}`);
  }
  return runs;
}
