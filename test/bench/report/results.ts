import type { ByPipe, IngressRates, Lonely, Neighbour, Subscriptions } from '../measurements.ts';
import type { PipeRun } from '../run.ts';
import type { Pipe } from '../variants.ts';
import { atLeast, atMost, type Correctness, type Figure } from './figures.ts';
import { ratios, type Spread, spreadOf } from './statistics.ts';

/** All measurements, as written to the results file. */
export interface Measured {
  readonly ingress: IngressRates;
  readonly highest: ByPipe<number>;
  /** Both pipes at the same rate, which neither of them can hold. */
  readonly overload: ByPipe<PipeRun>;
  /** Both pipes at half of the lower one of their highest rates. */
  readonly even: ByPipe<PipeRun>;
  /** Both pipes at 200 events per second with 1 subscription, and at 1,000 deliveries per second with 10. */
  readonly low: ByPipe<PipeRun>;
  /** Sluice at half of its highest rate. */
  readonly half: ByPipe<PipeRun>['sluice'];
  /** Sluice with one subscription at 1 event per second. */
  readonly lonely: Lonely;
  readonly memory: Record<Subscriptions, number>;
  /** Sluice when overloaded, by the number of subscriptions. Only one of them matches. */
  readonly many: Readonly<Record<number, readonly PipeRun[]>>;
  readonly neighbour: Neighbour;
  readonly sickNeighbours: Neighbour;
  readonly correctness: Correctness;
}

type Read = (run: PipeRun) => number;

const PIPES = ['sluice', 'bullmq'] as const satisfies readonly Pipe['name'][];
const BOTH = [1, 10] as const satisfies readonly Subscriptions[];

const plural = (k: number) => `${k.toLocaleString('en')} subscription${k === 1 ? '' : 's'}`;
const cpuOf: Read = run => run.cpuPerThousand + run.redisCpuPerThousand;
const rate = (values: readonly number[]) => `${Math.round(spreadOf(values).median)}/s`;
const middle = (runs: readonly PipeRun[], of: Read) => spreadOf(runs.map(of)).median;
const ms = (runs: readonly PipeRun[], of: Read) => middle(runs, of).toFixed(1);

/** Returns the ratio between Sluice and BullMQ for each round. */
function against(runs: ByPipe<PipeRun>, k: Subscriptions, of: Read): Spread {
  return ratios(runs.sluice[k].map(of), runs.bullmq[k].map(of));
}

function latency(k: Subscriptions, which: 'p50' | 'p99', runs: ByPipe<PipeRun>): Figure {
  return {
    name: `${which} to delivery at ${runs.sluice[k][0]?.rate ?? 0} events/s, ${plural(k)}, against BullMQ`,
    value: against(runs, k, run => (which === 'p50' ? run.p50Ms : run.p99Ms)),
    detail: PIPES.map(pipe => {
      const of = runs[pipe][k];
      return `${pipe} p50 ${ms(of, run => run.p50Ms)} p99 ${ms(of, run => run.p99Ms)} ms`;
    }).join(', '),
  };
}

/** Returns figures of the time from the 202 to the arrival. Both pipes have stored the event by then. */
function afterAccept(k: Subscriptions, which: 'p50Ms' | 'p99Ms', runs: ByPipe<PipeRun>, most: number): Figure {
  const read: Read = run => run.afterAccept?.[which] ?? Number.NaN;
  return {
    name: `${which.slice(0, 3)} from 202 to delivery at ${runs.sluice[k][0]?.rate ?? 0} events/s, ${plural(k)}, against BullMQ`,
    value: against(runs, k, read),
    target: atMost(most),
    detail: PIPES.map(pipe => `${pipe} ${middle(runs[pipe][k], read).toFixed(2)} ms`).join(', '),
  };
}

function cpu(k: Subscriptions, when: string, runs: ByPipe<PipeRun>, limit?: number): Figure {
  return {
    name: `CPU a delivery ${when}, ${plural(k)}, against BullMQ`,
    value: against(runs, k, cpuOf),
    ...(limit === undefined ? {} : { target: atMost(limit) }),
    detail: PIPES.map(pipe => {
      const roles = middle(runs[pipe][k], run => run.cpuPerThousand);
      const redis = middle(runs[pipe][k], run => run.redisCpuPerThousand);
      return `${pipe} ${roles.toFixed(2)} s + Redis ${redis.toFixed(2)} s per 1,000`;
    }).join(', '),
  };
}

function commands(name: string, runs: readonly PipeRun[], limit: number, bullmq?: readonly PipeRun[]): Figure {
  return {
    name: `Redis commands a delivery ${name}`,
    value: spreadOf(runs.map(run => run.commandsPerDelivery)),
    target: atMost(limit),
    detail: bullmq === undefined ? '' : `BullMQ ${middle(bullmq, run => run.commandsPerDelivery).toFixed(2)}`,
  };
}

function neighbourFigure(of: string, { alone, beside }: Neighbour): Figure {
  return {
    name: `p99 of ${of}`,
    value: ratios(
      beside.map(run => run.p99Ms),
      alone.map(run => run.p99Ms),
    ),
    target: atMost(1.1),
    detail: `${ms(alone, run => run.p99Ms)} ms without, ${ms(beside, run => run.p99Ms)} ms with it, at ${alone[0]?.rate ?? 0} events/s`,
  };
}

export function sickNeighboursFigure(runs: Neighbour): Figure {
  return neighbourFigure('47 healthy endpoints while one hangs, one is dead, and one resets', runs);
}

/** Returns the rates with many subscriptions that do not match, compared with a single subscription. */
function manyFigures(many: Measured['many']): Figure[] {
  const GOALS: Readonly<Record<number, number>> = { 1_000: 0.9, 10_000: 0.8 };
  const alone = (many[1] ?? []).map(run => run.deliveredPerSecond);
  return Object.entries(GOALS)
    .filter(([k]) => many[Number(k)] !== undefined)
    .map(([k, goal]) => {
      const rates = (many[Number(k)] ?? []).map(run => run.deliveredPerSecond);
      return {
        name: `events/s when overloaded, ${plural(Number(k))} of which one matches, against one subscription`,
        value: ratios(rates, alone),
        target: atLeast(goal),
        detail: `${rate(rates)}, ${rate(alone)} with one`,
      };
    });
}

function throughput({ ingress, highest, overload, many }: Measured): Figure[] {
  const goal = { 1: atLeast(2), 10: atLeast(3.5) };
  return [
    {
      name: 'ingress, against Fastify with the same batched XADD',
      value: ratios(ingress.sluice, ingress.xadd),
      target: atLeast(0.8),
      detail: `Sluice ${rate(ingress.sluice)}, XADD ${rate(ingress.xadd)}`,
    },
    {
      name: 'ingress, against Fastify that stores nothing',
      value: ratios(ingress.sluice, ingress.bare),
      detail: `Sluice ${rate(ingress.sluice)}, bare ${rate(ingress.bare)}`,
    },
    ...BOTH.map(k => ({
      name: `highest rate held, ${plural(k)}, against BullMQ`,
      value: ratios(highest.sluice[k], highest.bullmq[k]),
      target: goal[k],
      detail: `Sluice ${rate(highest.sluice[k])}, BullMQ ${rate(highest.bullmq[k])} (events; deliveries: times ${k})`,
    })),
    ...BOTH.map(k => ({
      name: `deliveries/s when overloaded, ${plural(k)}, against BullMQ`,
      value: against(overload, k, run => run.deliveredPerSecond),
      target: goal[k],
      detail: PIPES.map(pipe => `${pipe} ${rate(overload[pipe][k].map(run => run.deliveredPerSecond))}`).join(', '),
    })),
    ...manyFigures(many),
  ];
}

export function lonelyFigure({ perDelivery, idlePerSecond }: Lonely): Figure {
  return {
    name: 'Redis commands a delivery at 1 event/s, 1 subscription, without heartbeats',
    value: spreadOf([perDelivery]),
    target: atMost(2.1),
    detail: `${idlePerSecond.toFixed(1)} commands/s without events`,
  };
}

/** Returns the figures of the report, starting with ratios. */
export function figuresOf(measured: Measured): Figure[] {
  const { overload, even, low, half, lonely, memory, neighbour, sickNeighbours } = measured;
  return [
    ...throughput(measured),
    afterAccept(1, 'p50Ms', low, 0.6),
    afterAccept(1, 'p99Ms', low, 0.7),
    afterAccept(10, 'p50Ms', low, 0.4),
    afterAccept(10, 'p99Ms', low, 0.5),
    ...BOTH.flatMap(k => [latency(k, 'p50', low), latency(k, 'p99', low)]),
    ...BOTH.map(k => latency(k, 'p99', even)),
    ...BOTH.map(k => ({
      name: `ms to delivery (p99) at half of the highest rate, ${plural(k)}`,
      value: spreadOf(half[k].map(run => run.p99Ms)),
      detail: `p50 ${ms(half[k], run => run.p50Ms)} ms; accepted in p50 ${ms(half[k], run => run.acceptP50Ms)} p99 ${ms(half[k], run => run.acceptP99Ms)} ms; at ${half[k][0]?.rate ?? 0}/s`,
    })),
    neighbourFigure('nine healthy endpoints while a tenth hangs', neighbour),
    sickNeighboursFigure(sickNeighbours),
    cpu(1, 'at 200 events/s', low, 0.75),
    cpu(10, 'at 100 events/s', low),
    cpu(1, 'when overloaded', overload, 0.5),
    cpu(10, 'when overloaded', overload, 0.3),
    lonelyFigure(lonely),
    commands('at 200 events/s, 1 subscription', low.sluice[1], 2, low.bullmq[1]),
    ...BOTH.map(k => commands(`when overloaded, ${plural(k)}`, overload.sluice[k], 0.6, overload.bullmq[k])),
    ...BOTH.map(k => ({
      name: `Redis bytes an event of 1 KiB, ${plural(k)}`,
      value: spreadOf([memory[k]]),
      target: atMost({ 1: 1_450, 10: 1_800 }[k]),
      detail: 'after delivery, kept for replay and dedupe; BullMQ keeps nothing',
    })),
  ];
}
