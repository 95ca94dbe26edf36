import { setTimeout as delay } from 'node:timers/promises';
import { CLUSTER_FAULTS, type ClusterFault } from './cluster-faults.ts';
import { startClusterWorld } from './cluster-world.ts';
import { FAULTS, type Fault } from './faults.ts';
import { type Figures, figuresOf } from './figures.ts';
import { type Judgement, judge } from './judge.ts';
import { checkConservation, type PartState } from './part-reader.ts';
import { isActive, SUBSCRIPTIONS } from './record.ts';
import { type Flow, startWorld, until } from './world.ts';

export interface RunOptions {
  /** Either all faults of a single Redis, or all faults of a Redis Cluster, one after another. */
  readonly faults: readonly Fault[] | readonly ClusterFault[];
  /** The duration of each fault. */
  readonly faultMs: number;
  /** The time during which events are sent before and after a fault. */
  readonly quietMs: number;
  /** A number from 0 to 1. */
  readonly random: () => number;
  /** Whether Redis stores its data on a disk. */
  readonly onDisk: boolean;
}

export interface RunReport extends Judgement {
  readonly name: string;
  readonly figures: Figures;
  readonly events: number;
  readonly arrivals: number;
  readonly hits: number;
  /** The number of responses of ingress by status, or by error code if there was no response. */
  readonly answers: ReadonlyMap<string, number>;
  /** The number of times that the part was read while events were sent. */
  readonly reads: number;
}

/** The first run always takes longer. */
const WARM_UP_MS = 2_000;
const ARRIVE_MS = 60_000;
/** The interval at which charges are reported to the account, in milliseconds. */
const SETTLE_MS = 20_000;
/** The time to wait after the last arrival for events that must not arrive. */
const GRACE_MS = 1_500;
/**
 * The producer may receive these statuses, or no response at all. Any other status would mean that the event was
 * rejected.
 */
const MAY_ANSWER = ['202', '503', '429'];

/** Continuously reads the part while events are being sent because its counts must be consistent at any time. */
function watchConservation({ reader }: Flow) {
  const problems = new Set<string>();
  let reads = 0;
  let isReading = false;
  const timer = setInterval(() => {
    if (isReading) return;
    isReading = true;
    reader
      .read()
      .then(
        state => {
          reads++;
          for (const problem of checkConservation(state)) problems.add(`while events flowed: ${problem}`);
        },
        // Redis is unavailable.
        () => {},
      )
      .finally(() => {
        isReading = false;
      });
  }, 500);
  return {
    end() {
      clearInterval(timer);
      return { problems: [...problems].slice(0, 4), reads };
    },
  };
}

/** Waits until all acknowledged events have arrived, and there are no more arrivals. */
async function waitForArrivals({ generator, sink }: Flow, names: readonly string[]): Promise<void> {
  const wanted = names.flatMap(name => {
    const subscription = SUBSCRIPTIONS.find(each => each === name) as (typeof SUBSCRIPTIONS)[number];
    return generator.events.filter(({ key }) => isActive(subscription, key)).map(({ id }) => `${name} ${id}`);
  });
  const missing = new Set(wanted);
  let seen = 0;
  await until(ARRIVE_MS, () => {
    for (; seen < sink.arrivals.length; seen++) {
      const arrival = sink.arrivals[seen];
      missing.delete(`${arrival?.subscription} ${arrival?.id}`);
    }
    return missing.size === 0;
  });
  await until(ARRIVE_MS, () => performance.now() - (sink.arrivals.at(-1)?.atMs ?? 0) > GRACE_MS);
}

const isSettled = ({ counts, charged, settled }: PartState) =>
  charged === settled &&
  Object.values(counts).every(({ pending, inflight, retrying, ended }) => pending + inflight + retrying + ended === 0);

/** Repeats each fault for its whole duration. */
async function disturb(flow: Flow, steps: readonly (() => Promise<void>)[], faultMs: number) {
  const fromMs = performance.now();
  for (const step of steps) {
    const untilMs = performance.now() + faultMs;
    while (performance.now() < untilMs) await step();
  }
  return { fromMs, toMs: flow.hits.at(-1)?.toMs ?? fromMs };
}

async function play(world: Flow, steps: readonly (() => Promise<void>)[], options: RunOptions): Promise<RunReport> {
  const { generator, sink, reader, hits, state } = world;
  const watch = watchConservation(world);
  await delay(WARM_UP_MS);
  const quietFromMs = performance.now();
  await delay(options.quietMs);
  const faultTime = await disturb(world, steps, options.faultMs);
  await delay(options.quietMs);
  await generator.finish(ARRIVE_MS);
  await waitForArrivals(world, ['ada', 'bob']);
  const liftedMs = performance.now();
  await state.write(false);
  await waitForArrivals(world, SUBSCRIPTIONS);
  await until(SETTLE_MS, async () => isSettled(await reader.read()));
  const { problems, reads } = watch.end();
  const { events, answers } = generator;
  const { arrivals } = sink;
  const judgement = judge({ events, arrivals, hits, samples: reader.samples, liftedMs, state: await reader.read() });
  const refusals = [...answers].filter(([status]) => /^\d+$/.test(status) && !MAY_ANSWER.includes(status));
  return {
    ...judgement,
    problems: [
      ...judgement.problems,
      ...problems,
      ...refusals.map(([status, times]) => `ingress answered ${status} ${times} times`),
      ...(hits.length > 0 && reads > 0 ? [] : [`${hits.length} faults, ${reads} times read: nothing was tested`]),
    ],
    name: options.faults.join(', '),
    figures: figuresOf(events, arrivals, { quietFromMs, ...faultTime }),
    events: events.length,
    arrivals: arrivals.length,
    hits: hits.length,
    answers,
    reads,
  };
}

const isOfCluster = (faults: RunOptions['faults']): faults is readonly ClusterFault[] =>
  faults.every(fault => Object.hasOwn(CLUSTER_FAULTS, fault));

/** Starts a world for the faults and returns it together with its faults. */
async function startFor({ faults, random, onDisk }: RunOptions) {
  if (isOfCluster(faults)) {
    const world = await startClusterWorld(random, { onDisk });
    return { world, steps: faults.map(fault => () => CLUSTER_FAULTS[fault](world)) };
  }
  const world = await startWorld(random, { onDisk });
  return { world, steps: faults.map(fault => () => FAULTS[fault](world)) };
}

/** Sends events through a separate data plane, injects a fault, and returns all violations. */
export async function runFault(options: RunOptions): Promise<RunReport> {
  const { world, steps } = await startFor(options);
  try {
    return await play(world, steps, options);
  } finally {
    await world.stop();
  }
}

/** Formats a report as lines, with the violations at the end. */
export function formatReport(report: RunReport): string {
  const { figures, answers, problems } = report;
  const ms = (value: number) => `${value.toFixed(value < 10 ? 1 : 0)} ms`;
  const isKnown = !Number.isNaN(figures.recoveredP99);
  const ratio = (figures.recoveredP99 / figures.quietP99).toFixed(1);
  const counts = [...answers].map(([status, times]) => `${status}: ${times}`).join(', ');
  return [
    `${report.name}: ${problems.length === 0 ? 'ok' : 'FAILED'}. ${report.events} events, ${report.arrivals} arrivals, ` +
      `${report.hits} faults; repeated ${report.repeats} of at most ${report.bound}; answers ${counts}`,
    `  quiet p50 ${ms(figures.quietP50)}, p99 ${ms(figures.quietP99)}; longest silence ${ms(figures.silence)}; ` +
      `p99 from 5 s after the last fault ${isKnown ? `${ms(figures.recoveredP99)} (${ratio} of quiet)` : 'not measured'}`,
    ...problems.map(problem => `  - ${problem}`),
  ].join('\n');
}
