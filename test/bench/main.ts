import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, release } from 'node:os';
import { join } from 'node:path';
import { stopOnSignal } from '../support/stop-signal.ts';
import { type ControlState, connectControlState } from './control-state.ts';
import { type Member, startFleet } from './fleet.ts';
import {
  byPipe,
  type Effort,
  measureAt,
  measureIngress,
  measureLonely,
  measureMany,
  measureMemory,
  measureNeighbour,
  measureOverload,
  ONE_HANGS,
  type Subscriptions,
  searchCapacity,
  THREE_ARE_SICK,
} from './measurements.ts';
import { type Figure, judgeRuns, reaches } from './report/figures.ts';
import { formatCorrectness, formatFigures } from './report/format.ts';
import { figuresOf, lonelyFigure, type Measured, sickNeighboursFigure } from './report/results.ts';
import { median } from './report/statistics.ts';
import { type PipeRun, runPipe } from './run.ts';
import { judgeSoak, measureSoak, soakFigures } from './soak.ts';
import { judgeTenants, measureTenants, tenantsFigures } from './tenants.ts';
import { measureUnblock, type Unblocking, unblockFigures } from './unblock.ts';
import { createBullmqPipe, createSluicePipe, emptyRedis, type Pipe } from './variants.ts';

/**
 * `make bench`: compares Sluice with its baselines on this machine. See docs/benchmark.md for the measurements.
 *
 * - `--quick`: runs each step once, to check that the benchmark works.
 * - `--only sick`: measures the healthy endpoints next to sick ones.
 * - `--only unblock`: measures the end of a block.
 * - `--only tenants`: measures four tenants next to four that misbehave.
 * - `--only lonely`: counts the Redis commands at 1 event per second.
 * - `--only soak`: checks that Redis is empty again after an hour of load (`--minutes`).
 */

const FULL: Effort = {
  rounds: 2,
  overloadRounds: 6,
  ingressRounds: 5,
  ingressMs: 2_000,
  probeMs: 3_000,
  latencyMs: 4_000,
  neighbourRounds: 7,
  neighbourMs: 2_500,
  lonelyEvents: 60,
  manyRounds: 4,
  memoryEvents: 20_000,
};
const QUICK: Effort = {
  rounds: 1,
  overloadRounds: 2,
  ingressRounds: 1,
  ingressMs: 1_000,
  probeMs: 1_000,
  latencyMs: 1_000,
  neighbourRounds: 1,
  neighbourMs: 1_000,
  lonelyEvents: 3,
  manyRounds: 1,
  memoryEvents: 2_000,
};

/** Events per second, resulting in 200 and 1,000 deliveries per second. */
const LOW_RATE: Record<Subscriptions, number> = { 1: 200, 10: 100 };

/** Events per second if the highest rate has not been measured: about a third of it. */
const SICK_RATE = 15;

/** The number of events waiting at the end of a block, and the number of measurements. */
const UNBLOCKED = [
  [6_400, 5],
  [100_000, 2],
] as const;
/** Events per second at which a backlog is sent, and a rate that two cores cannot hold. */
const BACKLOG_RATE = 3_000;
const OVERLOAD_RATE = 15_000;

const ONLY = ['sick', 'unblock', 'tenants', 'lonely', 'soak'] as const;
type Only = (typeof ONLY)[number];

/** The number of pairs of runs with eight tenants. */
const TENANT_PAIRS = 15;

const ROOT = join(import.meta.dirname, '..', '..');
const quick = process.argv.includes('--quick');
const only = readOnly();
const effort = quick ? QUICK : FULL;
const report = (line: string) => console.log(`  ${line}`);

function readOnly(): Only | undefined {
  const at = process.argv.indexOf('--only');
  if (at < 0) return undefined;
  const name = process.argv[at + 1];
  if (ONLY.includes(name as Only)) return name as Only;
  console.error(`--only takes ${ONLY.join(', ')}`);
  process.exit(2);
}

/** Returns the value of `--minutes`. Default: 60. */
function readMinutes(): number {
  const at = process.argv.indexOf('--minutes');
  const minutes = at < 0 ? 60 : Number(process.argv[at + 1]);
  if (Number.isInteger(minutes) && minutes > 0) return minutes;
  console.error('--minutes takes a whole number greater than 0');
  process.exit(2);
}

function describeMachine(): string {
  const [first] = cpus();
  const redis = execFileSync('redis-server', ['--version'], { encoding: 'utf8' }).match(/v=\S+/)?.[0] ?? '';
  return `${cpus().length} cores (${first?.model.trim() ?? 'unknown'}), Linux ${release()}, Node ${process.version}, Redis ${redis.slice(2)}`;
}

async function measureSick(pipe: Pipe) {
  const runs: PipeRun[] = [];
  const measure = (how: Effort) =>
    measureNeighbour(fleet, pipe, THREE_ARE_SICK, SICK_RATE, how, run => void runs.push(run), report);
  // The first runs warm up.
  await measure({ ...effort, neighbourRounds: 1 });
  const measured = await measure(effort);
  return { figures: [sickNeighboursFigure(measured)], correctness: judgeRuns(runs) };
}

async function measureUnblocks(pipe: Pipe, state: ControlState) {
  // The rate of an unblocked backlog is compared with that of an overload.
  const runs: PipeRun[] = [];
  for (let round = 0; round < 3; round++) {
    runs.push(await runPipe(fleet, pipe, { endpoints: 1, rate: OVERLOAD_RATE, count: OVERLOAD_RATE * 2 }));
  }
  const most = median(runs.map(run => run.deliveredPerSecond));
  const figures: Figure[] = [];
  const got: Unblocking[] = [];
  for (const [backlog, rounds] of UNBLOCKED) {
    const ended: Unblocking[] = [];
    for (let round = 0; round < (quick ? 1 : rounds); round++) {
      ended.push(await measureUnblock(fleet, pipe, state, { backlog, rate: BACKLOG_RATE }));
      report(`end of a block, ${backlog} events waiting, ${round + 1} of ${rounds}`);
    }
    figures.push(...unblockFigures(ended, most));
    got.push(...ended);
  }
  return {
    figures,
    correctness: judgeRuns([
      ...runs,
      ...got.map(({ got: { unique, ...rest } }) => ({ ...rest, missing: rest.expected - unique })),
    ]),
  };
}

async function measureEight(roles: readonly Member[], state: ControlState) {
  const pairs = quick ? 1 : TENANT_PAIRS;
  const runs = await measureTenants(fleet, roles, state, { pairs, forMs: effort.latencyMs }, report);
  return { figures: tenantsFigures(runs), correctness: judgeTenants(runs) };
}

async function measureAlone(pipe: Pipe) {
  const runs: PipeRun[] = [];
  const lonely = await measureLonely(fleet, pipe, effort, run => void runs.push(run), report);
  return { figures: [lonelyFigure(lonely)], correctness: judgeRuns(runs) };
}

async function measureLong(state: ControlState) {
  const soak = await measureSoak(fleet, state, readMinutes(), report);
  return { figures: soakFigures(soak), correctness: judgeSoak(soak) };
}

const machine = describeMachine();
console.log(
  [
    `Sluice bench on ${machine}.`,
    'Generator, receiver, every role and Redis share these cores: absolute figures are of this machine and its other',
    'users; compare the ratios, which are taken between runs that alternate. Events of 1 KiB, 100 group keys,',
    'appendonly yes, appendfsync always for all.',
  ].join('\n'),
);
const startedMs = performance.now();
const fleet = await startFleet(THREE_ARE_SICK.endpoints);
stopOnSignal(fleet.stop);
const failures: string[] = [];
try {
  const state = await connectControlState(fleet.redis.sluice.url, fleet.rootKey);
  if (only !== undefined) {
    const roles = [fleet.ingress, ...(await fleet.startPipeline())];
    const pipe = createSluicePipe(fleet, roles, state);
    const measures = {
      sick: () => measureSick(pipe),
      unblock: () => measureUnblocks(pipe, state),
      tenants: () => measureEight(roles, state),
      lonely: () => measureAlone(pipe),
      soak: () => measureLong(state),
    };
    const { figures, correctness } = await measures[only]();
    await state.close();
    console.log(`\n${formatFigures(figures)}\n\n${formatCorrectness('Sluice', correctness)}`);
    await fleet.stop();
    process.exit(correctness.missing + correctness.duplicates + correctness.outOfOrder > 0 ? 1 : 0);
  }
  const ingress = await measureIngress(fleet, await state.write(fleet.ingress.port, []), effort, report);
  await emptyRedis(fleet.redis.xadd);

  const sluice = createSluicePipe(fleet, [fleet.ingress, ...(await fleet.startPipeline())], state);
  const bullmq = createBullmqPipe(fleet);
  const runs = byPipe<PipeRun>();
  const onRun = (run: PipeRun) => {
    runs[run.pipe][run.endpoints as Subscriptions].push(run);
    if (process.argv.includes('--verbose')) report(JSON.stringify(run));
  };
  const others: PipeRun[] = [];
  const onOthers = (run: PipeRun) => void others.push(run);
  const pipes = [sluice, bullmq];
  // Warm up both pipes before the first probe.
  await measureAt(
    fleet,
    pipes,
    () => 300,
    { ...effort, rounds: 1 },
    onRun,
    () => {},
  );

  const highest = await searchCapacity(fleet, pipes, effort, onRun, report);
  const part = (pipe: Pipe['name'], k: Subscriptions, of: number) => median(highest[pipe][k]) * of;
  const greater = (k: Subscriptions) => Math.max(part('sluice', k, 1), part('bullmq', k, 1));
  const overload = await measureOverload(fleet, pipes, greater, effort, onRun, report);
  const lesserHalf = (k: Subscriptions) => Math.min(part('sluice', k, 0.5), part('bullmq', k, 0.5));
  const even = await measureAt(fleet, pipes, lesserHalf, effort, onRun, report);
  const often = { ...effort, rounds: effort.overloadRounds };
  const low = await measureAt(fleet, pipes, k => LOW_RATE[k], often, onRun, report);
  const lonely = await measureLonely(fleet, sluice, effort, onRun, report);
  const half = await measureAt(fleet, [sluice], k => part('sluice', k, 0.5), effort, onRun, report);
  const memory = await measureMemory(fleet, sluice, k => part('sluice', k, 0.7), effort, onRun, report);
  const many = await measureMany(fleet, sluice, greater(1) * 1.2, effort, onRun, report);
  const atThird = part('sluice', 10, 0.3);
  const neighbour = await measureNeighbour(fleet, sluice, ONE_HANGS, atThird, effort, onRun, report);
  // There are five times as many deliveries for each event.
  const sickNeighbours = await measureNeighbour(fleet, sluice, THREE_ARE_SICK, atThird / 5, effort, onOthers, report);
  await state.close();

  const correctness = (pipe: Pipe['name']) =>
    judgeRuns([...runs[pipe][1], ...runs[pipe][10], ...(pipe === 'sluice' ? others : [])]);
  const measured: Measured = {
    ingress,
    highest,
    overload,
    even,
    low,
    lonely,
    many,
    half: half.sluice,
    memory,
    neighbour,
    sickNeighbours,
    correctness: correctness('sluice'),
  };
  const figures = figuresOf(measured);
  console.log(`\n${formatFigures(figures)}\n`);
  console.log(formatCorrectness('Sluice', measured.correctness));
  console.log(`${formatCorrectness('BullMQ', correctness('bullmq'))} (it promises no order)`);
  const { missing, duplicates, outOfOrder } = measured.correctness;
  if (missing + duplicates + outOfOrder > 0) failures.push('Sluice lost, repeated or reordered events');

  const folder = join(ROOT, 'bench-results');
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${new Date().toISOString().replaceAll(':', '-')}.json`);
  const judged = figures.map(figure => ({ ...figure, reached: reaches(figure) }));
  writeFileSync(file, JSON.stringify({ machine, effort, figures: judged, measured, runs }, null, 1));
  console.log(`${Math.round((performance.now() - startedMs) / 1_000)} s; ${file.slice(ROOT.length + 1)}`);
} finally {
  await fleet.stop();
}
for (const failure of failures) console.error(failure);
process.exit(failures.length > 0 ? 1 : 0);
