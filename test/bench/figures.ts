import type { ByPipe, IngressRates, Neighbour, Subscriptions } from './measurements.ts';
import type { PipeRun } from './run.ts';
import { ratios, type Spread, spreadOf } from './statistics.ts';
import type { Pipe } from './variants.ts';

/** Everything that was measured, as it goes into the result file. */
export interface Measured {
  readonly ingress: IngressRates;
  readonly highest: ByPipe<number>;
  /** Both pipes at the same rate, which is above what either takes. */
  readonly overload: ByPipe<PipeRun>;
  /** Both pipes at half of the lesser highest rate. */
  readonly even: ByPipe<PipeRun>;
  /** Sluice at half of its own. */
  readonly half: ByPipe<PipeRun>['sluice'];
  readonly memory: Record<Subscriptions, number>;
  readonly neighbour: Neighbour;
  readonly sickNeighbours: Neighbour;
  readonly correctness: Correctness;
}

export interface Correctness {
  readonly deliveries: number;
  readonly missing: number;
  readonly duplicates: number;
  readonly outOfOrder: number;
}

/** A figure with a target; `value` is dimensionless, a count or bytes, as the name says. */
export interface Figure {
  readonly name: string;
  readonly value: Spread;
  readonly target?: { readonly sign: '>=' | '<='; readonly limit: number };
  /** Absolute figures, of this machine only. */
  readonly detail: string;
}

/** Whether the median reaches the target; undefined without one. */
export function reaches({ value, target }: Figure): boolean | undefined {
  if (target === undefined) return undefined;
  return target.sign === '>=' ? value.median >= target.limit : value.median <= target.limit;
}

/** Sums a pipe's runs: every event has to arrive once and in order of its group key. */
export function judgeRuns(runs: readonly PipeRun[]): Correctness {
  const sum = (of: (run: PipeRun) => number) => runs.reduce((total, run) => total + of(run), 0);
  return {
    deliveries: sum(run => run.expected),
    missing: sum(run => run.missing),
    duplicates: sum(run => run.duplicates),
    outOfOrder: sum(run => run.outOfOrder),
  };
}

/** 1.5 KB, and 180 bytes for each subscription. */
export function memoryLimit(subscriptions: number): number {
  return 1_500 + 180 * subscriptions;
}

const plural = (k: Subscriptions) => `${k} subscription${k === 1 ? '' : 's'}`;
const cpuOf = (run: PipeRun) => run.cpuPerThousand + run.redisCpuPerThousand;
const rate = (values: readonly number[]) => `${Math.round(spreadOf(values).median)}/s`;
const ms = (runs: readonly PipeRun[], of: (run: PipeRun) => number) => spreadOf(runs.map(of)).median.toFixed(1);

function compareCpu(k: Subscriptions, when: string, runs: ByPipe<PipeRun>): Figure {
  return {
    name: `CPU a delivery ${when}, ${plural(k)}, against BullMQ`,
    value: ratios(runs.sluice[k].map(cpuOf), runs.bullmq[k].map(cpuOf)),
    detail: (['sluice', 'bullmq'] as const)
      .map(pipe => {
        const roles = spreadOf(runs[pipe][k].map(run => run.cpuPerThousand)).median;
        const redis = spreadOf(runs[pipe][k].map(run => run.redisCpuPerThousand)).median;
        return `${pipe} ${roles.toFixed(2)} s + Redis ${redis.toFixed(2)} s per 1,000`;
      })
      .join(', '),
  };
}

function neighbourFigure(of: string, { alone, beside }: Neighbour): Figure {
  return {
    name: `p99 of ${of}`,
    value: ratios(
      beside.map(run => run.p99Ms),
      alone.map(run => run.p99Ms),
    ),
    target: { sign: '<=', limit: 1.1 },
    detail: `${ms(alone, run => run.p99Ms)} ms without, ${ms(beside, run => run.p99Ms)} ms with it, at ${alone[0]?.rate ?? 0} events/s`,
  };
}

export function sickNeighboursFigure(runs: Neighbour): Figure {
  return neighbourFigure('47 endpoints, beside one that hangs, one dead, one that resets', runs);
}

/** What the bench says, ratios first. */
export function figuresOf({
  ingress,
  highest,
  overload,
  even,
  half,
  memory,
  neighbour,
  sickNeighbours,
}: Measured): Figure[] {
  const at = (k: Subscriptions, what: (run: PipeRun) => number, pipe: Pipe['name'] = 'sluice') =>
    even[pipe][k].map(what);
  const against = (k: Subscriptions, limit: number): Figure => ({
    name: `highest rate held, ${plural(k)}, against BullMQ`,
    value: ratios(highest.sluice[k], highest.bullmq[k]),
    target: { sign: '>=', limit },
    detail: `Sluice ${rate(highest.sluice[k])}, BullMQ ${rate(highest.bullmq[k])} (events; deliveries: times ${k})`,
  });
  const loaded = (k: Subscriptions, what: (run: PipeRun) => number, pipe: Pipe['name'] = 'sluice') =>
    overload[pipe][k].map(what);
  const overloaded = (k: Subscriptions, limit: number): Figure => ({
    name: `deliveries/s when overloaded, ${plural(k)}, against BullMQ`,
    value: ratios(
      loaded(k, run => run.deliveredPerSecond),
      loaded(k, run => run.deliveredPerSecond, 'bullmq'),
    ),
    target: { sign: '>=', limit },
    detail: `Sluice ${rate(loaded(k, run => run.deliveredPerSecond))}, BullMQ ${rate(loaded(k, run => run.deliveredPerSecond, 'bullmq'))}`,
  });
  const latency = (k: Subscriptions): Figure => ({
    name: `p99 to delivery, ${plural(k)}, against BullMQ at the same rate`,
    value: ratios(
      at(k, run => run.p99Ms),
      at(k, run => run.p99Ms, 'bullmq'),
    ),
    detail: (['sluice', 'bullmq'] as const)
      .map(pipe => {
        const runs = even[pipe][k];
        return `${pipe} p50 ${ms(runs, run => run.p50Ms)} p99 ${ms(runs, run => run.p99Ms)} ms at ${runs[0]?.rate ?? 0}/s`;
      })
      .join(', '),
  });
  const own = (k: Subscriptions): Figure => ({
    name: `ms to delivery (p99) at half of the highest rate, ${plural(k)}`,
    value: spreadOf(half[k].map(run => run.p99Ms)),
    detail: `p50 ${ms(half[k], run => run.p50Ms)} ms; accepted in p50 ${ms(half[k], run => run.acceptP50Ms)} p99 ${ms(half[k], run => run.acceptP99Ms)} ms; at ${half[k][0]?.rate ?? 0}/s`,
  });
  const commands = (k: Subscriptions): Figure => ({
    name: `Redis commands a delivery when overloaded, ${plural(k)}`,
    value: spreadOf(loaded(k, run => run.commandsPerDelivery)),
    target: { sign: '<=', limit: 3.5 },
    detail: `BullMQ ${spreadOf(loaded(k, run => run.commandsPerDelivery, 'bullmq')).median.toFixed(2)}; at ${even.sluice[k][0]?.rate ?? 0} events/s Sluice ${spreadOf(at(k, run => run.commandsPerDelivery)).median.toFixed(2)}, BullMQ ${spreadOf(at(k, run => run.commandsPerDelivery, 'bullmq')).median.toFixed(2)}`,
  });
  const kept = (k: Subscriptions): Figure => ({
    name: `Redis bytes an event of 1 KiB, ${plural(k)}`,
    value: spreadOf([memory[k]]),
    target: { sign: '<=', limit: memoryLimit(k) },
    detail: 'after delivery, kept for replay and dedupe; BullMQ keeps nothing',
  });
  return [
    {
      name: 'ingress, against Fastify with the same batched XADD',
      value: ratios(ingress.sluice, ingress.xadd),
      target: { sign: '>=', limit: 0.8 },
      detail: `Sluice ${rate(ingress.sluice)}, XADD ${rate(ingress.xadd)}`,
    },
    {
      name: 'ingress, against Fastify that stores nothing',
      value: ratios(ingress.sluice, ingress.bare),
      detail: `Sluice ${rate(ingress.sluice)}, bare ${rate(ingress.bare)}`,
    },
    against(1, 1.3),
    against(10, 1.5),
    overloaded(1, 1.3),
    overloaded(10, 1.5),
    neighbourFigure('nine endpoints, beside one that hangs', neighbour),
    sickNeighboursFigure(sickNeighbours),
    latency(1),
    latency(10),
    own(1),
    own(10),
    compareCpu(1, 'when overloaded', overload),
    compareCpu(10, 'when overloaded', overload),
    compareCpu(1, 'at the same rate', even),
    compareCpu(10, 'at the same rate', even),
    commands(1),
    commands(10),
    kept(1),
    kept(10),
  ];
}
