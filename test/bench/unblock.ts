import { setTimeout as delay } from 'node:timers/promises';
import { sendCommand } from './commands.ts';
import type { ControlState } from './control-state.ts';
import type { Fleet } from './fleet.ts';
import type { OpenLoop, Sent } from './producer.ts';
import type { Look, Received } from './receiver.ts';
import { atLeast, atMost, type Figure } from './report/figures.ts';
import { spreadOf } from './report/statistics.ts';
import { CONNECTIONS, nextRun } from './run.ts';
import type { Pipe } from './variants.ts';
import { GROUP_KEYS } from './wire.ts';

/**
 * Measures the end of a block. One of two subscriptions to a stream is blocked while a backlog arrives. The other one
 * receives all events immediately, and its latency shows the effect of the backlog.
 */

/** Events per second sent in addition to the backlog. */
const BESIDE = 200;
const QUIET_MS = 5_000;
const PATIENCE_MS = 60_000;

export interface Unblocking {
  readonly backlog: number;
  /** The time from the end of the block until the last event of the backlog has arrived. */
  readonly tookMs: number;
  /** The longest time without an arrival after the end of the block. */
  readonly gapMs: number;
  /** The p99 of the other subscription, before and after the end of the block. */
  readonly quietP99Ms: number;
  readonly meanwhileP99Ms: number;
  readonly got: Received;
}

/** Blocks a subscription, sends a backlog, removes the block, and waits until the whole backlog has arrived. */
export async function measureUnblock(
  fleet: Fleet,
  pipe: Pipe,
  state: ControlState,
  { backlog, rate }: { readonly backlog: number; readonly rate: number },
): Promise<Unblocking> {
  const control = fleet.receiver.controlPort;
  const run = nextRun();
  const live = Math.ceil((BESIDE * (QUIET_MS + PATIENCE_MS / 3)) / 1_000 / GROUP_KEYS) * GROUP_KEYS;
  const look = (anew: boolean) => sendCommand<Look>(control, 'look', { anew });
  const send = (order: Pick<OpenLoop, 'rate' | 'count' | 'first'>) =>
    sendCommand<Sent>(fleet.producer.controlPort, 'open', {
      target,
      run,
      connections: CONNECTIONS,
      patienceMs: PATIENCE_MS,
      ...order,
    } satisfies OpenLoop);

  const target = await pipe.prepare(2, [], 0);
  await state.block(true);
  await sendCommand(control, 'begin', { run, events: backlog + live, endpoints: 2, observed: 1, sick: [] });
  const sent = await send({ rate, count: backlog });
  if (sent.accepted < backlog) throw new Error(`${sent.refused} events of the backlog were refused`);
  await delay(2_000);

  const sending = send({ rate: BESIDE, count: live, first: backlog });
  await delay(1_000);
  await look(true);
  await delay(QUIET_MS);
  const quiet = await look(true);
  const startedMs = performance.now();
  await state.block(false);
  let meanwhile = await look(false);
  while ((meanwhile.endpoints[1]?.unique ?? 0) < backlog) {
    if (performance.now() - startedMs > PATIENCE_MS) throw new Error('the backlog did not arrive');
    await delay(20);
    meanwhile = await look(false);
  }
  const tookMs = performance.now() - startedMs;
  const { endUs } = await sending;
  const got = await sendCommand<Received>(control, 'finish', { untilUs: endUs + PATIENCE_MS * 1_000, graceMs: 30 });
  const gapMs = meanwhile.endpoints[1]?.gapMs ?? Number.NaN;
  return { backlog, tookMs, gapMs, quietP99Ms: quiet.p99Ms, meanwhileP99Ms: meanwhile.p99Ms, got };
}

/** Returns the figures of runs with the same backlog. `held` is the highest rate held with one subscription. */
export function unblockFigures(runs: readonly Unblocking[], held: number): Figure[] {
  const of = (read: (run: Unblocking) => number) => spreadOf(runs.map(read));
  const name = `end of a block with ${runs[0]?.backlog.toLocaleString('en')} events waiting`;
  const perSecond = of(run => (run.backlog * 1_000) / run.tookMs);
  const quiet = of(run => run.quietP99Ms).median.toFixed(1);
  const meanwhile = of(run => run.meanwhileP99Ms).median.toFixed(1);
  return [
    { name: `${name}: ms until the last has arrived`, value: of(run => run.tookMs), detail: '' },
    {
      name: `${name}: longest gap in ms`,
      value: of(run => run.gapMs),
      target: atMost(300),
      detail: 'between two arrivals, and from the end of the block to the first',
    },
    {
      name: `${name}: deliveries/s, against the highest rate held`,
      value: of(run => (run.backlog * 1_000) / run.tookMs / held),
      target: atLeast(0.7),
      detail: `${Math.round(perSecond.median)}/s, ${Math.round(held)}/s held`,
    },
    {
      name: `${name}: p99 of the other subscription, against before`,
      value: of(run => run.meanwhileP99Ms / run.quietP99Ms),
      target: atMost(1.2),
      detail: `${quiet} ms before, ${meanwhile} ms meanwhile, at ${BESIDE} events/s`,
    },
  ];
}
