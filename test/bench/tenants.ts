import { setTimeout as delay } from 'node:timers/promises';
import { sendCommand } from './commands.ts';
import type { ControlState } from './control-state.ts';
import type { Fleet, Member } from './fleet.ts';
import { readCpuSeconds, readMachineCpuSeconds } from './process-cpu.ts';
import type { OpenLoop, Sent } from './producer.ts';
import type { Expectation, Received, Sickness } from './receiver.ts';
import { atMost, type Correctness, type Figure, judgeRuns } from './report/figures.ts';
import { median, ratios } from './report/statistics.ts';
import { nextRun } from './run.ts';
import { emptyRedis } from './variants.ts';
import type { Target } from './wire.ts';

/**
 * Measures the latency of four tenants while four others misbehave at the same time. All of them have the same routes
 * in both runs of a pair, and only the load changes.
 */

/** The number of well-behaved tenants, with one endpoint each. */
const WELL = 4;
/** Events per second of each well-behaved tenant. */
const RATE = 25;
/** The number of connections of the generator for each stream. Divides the number of group keys. */
const CONNECTIONS = 10;
/** The time for which the four misbehave before the others are measured. */
const LEAD_MS = 2_000;
const PATIENCE_MS = 10_000;
/** A pair is void if other processes of the machine use more than this many cores. */
const MOST_OTHER_CORES = 0.1;

interface Misbehaviour {
  readonly sickness: Sickness;
  /** The number of subscriptions with the same endpoint. */
  readonly subscriptions: number;
  /** Events per second. */
  readonly rate: number;
  /** The limit of the tenant, in events per second. */
  readonly limit?: number;
}

const MISBEHAVIOURS: readonly Misbehaviour[] = [
  // A partner with many subscriptions whose endpoint never responds.
  { sickness: 'hangs', subscriptions: 32, rate: 20 },
  // An endpoint that responds shortly before its timeout, with a backlog of all group keys.
  { sickness: 'slow', subscriptions: 1, rate: 100 },
  // An endpoint that closes every connection, and is retried.
  { sickness: 'resets', subscriptions: 1, rate: 50 },
  // A producer that sends ten times what its limit allows.
  { sickness: 'flooded', subscriptions: 1, rate: 500, limit: 50 },
];
/** Events per second with a wrong ingress key, sent to the stream of the last tenant. */
const WRONG_KEYS_RATE = 200;

interface TenantsRun {
  readonly got: Received;
  readonly refused: number;
  /** The number of cores used by other processes of the machine. */
  readonly otherCores: number;
}

/** The pairs of runs, without and with misbehaving tenants. */
export interface Tenants {
  readonly quiet: TenantsRun[];
  readonly beside: TenantsRun[];
}

/** Creates the tenants in an empty Redis. */
async function writeTenants(fleet: Fleet, state: ControlState): Promise<Target[]> {
  await emptyRedis(fleet.redis.sluice);
  const [port, ports] = [fleet.ingress.port, fleet.endpointPorts];
  const targets: Target[] = [];
  for (let at = 0; at < WELL; at++) targets.push(await state.write(port, ports.slice(at, at + 1)));
  for (const [at, { subscriptions, limit }] of MISBEHAVIOURS.entries()) {
    const endpoints = Array.from({ length: subscriptions }, () => ports[WELL + at] as number);
    targets.push(await state.write(port, endpoints, limit === undefined ? {} : { eventsPerSecond: limit }));
  }
  return targets;
}

async function runTenants(
  fleet: Fleet,
  roles: readonly Member[],
  state: ControlState,
  { misbehave, forMs }: { readonly misbehave: boolean; readonly forMs: number },
): Promise<TenantsRun> {
  const targets = await writeTenants(fleet, state);
  const events = Math.round((RATE * forMs) / 1_000);
  const [run, otherRun] = [nextRun(), nextRun()];
  const sick = MISBEHAVIOURS.map(({ sickness }) => sickness);
  const expectation: Expectation = { run, events, endpoints: WELL + sick.length, observed: WELL, sick };
  await sendCommand(fleet.receiver.controlPort, 'begin', expectation);
  const send = (target: Target, order: Pick<OpenLoop, 'run' | 'rate' | 'count' | 'patienceMs'>) =>
    sendCommand<Sent>(fleet.producer.controlPort, 'open', { target, connections: CONNECTIONS, ...order });

  const floods = targets.slice(WELL).map((target, at) => ({ target, rate: MISBEHAVIOURS[at]?.rate ?? 0 }));
  const last = targets.at(-1) as Target;
  floods.push({ target: { ...last, headers: { 'x-api-key': '0'.repeat(32) } }, rate: WRONG_KEYS_RATE });
  const order = (rate: number) => ({ rate, count: Math.round((rate * (LEAD_MS + forMs)) / 1_000), patienceMs: 0 });
  const flooding = misbehave ? floods.map(({ target, rate }) => send(target, { run: otherRun, ...order(rate) })) : [];
  await delay(LEAD_MS);

  const own = [process.pid, ...pidsOf(fleet, roles)];
  const cpu = async () => (await readMachineCpuSeconds()) - (await readCpuSeconds(own));
  const [before, beganMs] = [await cpu(), performance.now()];
  const sent = await Promise.all(
    targets.slice(0, WELL).map(target => send(target, { run, rate: RATE, count: events, patienceMs: PATIENCE_MS })),
  );
  const untilUs = Math.max(...sent.map(({ endUs }) => endUs)) + PATIENCE_MS * 1_000;
  const got = await sendCommand<Received>(fleet.receiver.controlPort, 'finish', { untilUs, graceMs: 30 });
  const otherCores = ((await cpu()) - before) / ((performance.now() - beganMs) / 1_000);
  const [flooded, wrong] = (await Promise.all(flooding)).slice(-2);
  if (misbehave && !(flooded?.refused && wrong?.refused)) throw new Error('ingress has not limited the flood');
  return { got, refused: sent.reduce((sum, { refused }) => sum + refused, 0), otherCores };
}

function pidsOf({ producer, receiver, redis, ...fleet }: Fleet, roles: readonly Member[]): number[] {
  const idle = [fleet.bare, fleet.xadd, fleet.bullmqIngress, fleet.bullmqWorker];
  return [...roles, producer, receiver, ...idle, ...Object.values(redis)].map(({ pid }) => pid);
}

/** Measures pairs of runs, in alternating order. The first pair warms up. */
export async function measureTenants(
  fleet: Fleet,
  roles: readonly Member[],
  state: ControlState,
  { pairs, forMs }: { readonly pairs: number; readonly forMs: number },
  report: (line: string) => void,
): Promise<Tenants> {
  const runs: Tenants = { quiet: [], beside: [] };
  for (let pair = 0; pair <= pairs; pair++) {
    for (const misbehave of pair % 2 === 0 ? [false, true] : [true, false]) {
      const run = await runTenants(fleet, roles, state, { misbehave, forMs });
      if (run.refused > 0) throw new Error(`${run.refused} events of tenants that behave were refused`);
      if (pair > 0) runs[misbehave ? 'beside' : 'quiet'].push(run);
    }
    if (pair > 0) report(`eight tenants, ${pair} of ${pairs}`);
  }
  return runs;
}

/** Returns the figures, without void pairs. */
export function tenantsFigures({ quiet, beside }: Tenants): Figure[] {
  const valid = quiet.flatMap((run, at) => {
    const other = beside[at];
    if (other === undefined || Math.max(run.otherCores, other.otherCores) > MOST_OTHER_CORES) return [];
    return [[run.got, other.got] as const];
  });
  return (['p50Ms', 'p99Ms'] as const).map(which => {
    const [without, within] = [valid.map(([one]) => one[which]), valid.map(([, other]) => other[which])];
    return {
      name: `${which.slice(0, 3)} of four tenants beside four that misbehave at once`,
      value: ratios(within, without),
      ...(which === 'p99Ms' ? { target: atMost(1.1) } : {}),
      detail:
        `${median(without).toFixed(1)} ms without, ${median(within).toFixed(1)} ms with them, at ${WELL} x ${RATE} events/s; ` +
        `${quiet.length - valid.length} of ${quiet.length} pairs void`,
    };
  });
}

/** Sums the deliveries of the well-behaved tenants. */
export function judgeTenants({ quiet, beside }: Tenants): Correctness {
  return judgeRuns([...quiet, ...beside].map(({ got }) => ({ ...got, missing: got.expected - got.unique })));
}
