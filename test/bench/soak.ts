import { setTimeout as delay } from 'node:timers/promises';
import { sendCommand } from './commands.ts';
import type { ControlState } from './control-state.ts';
import type { Fleet } from './fleet.ts';
import type { OpenLoop, Sent } from './producer.ts';
import type { Expectation, Received } from './receiver.ts';
import { atMost, type Correctness, type Figure, judgeRuns } from './report/figures.ts';
import { spreadOf } from './report/statistics.ts';
import { nextRun, usedMemory } from './run.ts';
import { emptyRedis } from './variants.ts';

/** Checks that Redis is as empty after a long load as before. The stream keeps events for a minute. */

const RETENTION_MS = 60_000;
const ENDPOINTS = 3;
/** Events per second, with the group keys of the bench, and each with a group key of its own. */
const RATE = 50;
const UNIQUE_KEYS_RATE = 10;
/** Events of the first kind in a minute. The commands of the bench take less than five minutes each. */
const A_MINUTE = 60 * RATE;
/**
 * Time until everything has expired: retention, the time an id is remembered, and what is cleaned up in the background.
 */
const EXPIRED_MS = 4 * RETENTION_MS;
/** Bytes of Redis that may remain, e.g. of connections and scripts that were loaded. */
const MOST_LEFT = 1_000_000;
const PATIENCE_MS = 15_000;

/** Sends events with a group key each, evenly spaced. Returns how many were not accepted. */
async function sendUniqueKeys({ port, path, headers }: OpenLoop['target'], untilMs: number): Promise<number> {
  let refused = 0;
  for (let n = 0; performance.now() < untilMs; n++) {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', 'x-sluice-group-key': `only-${n}` },
      body: JSON.stringify({ n }),
    });
    await answer.arrayBuffer();
    if (answer.status !== 202) refused++;
    await delay(1_000 / UNIQUE_KEYS_RATE);
  }
  return refused;
}

/** Returns how many deliveries of the only stream are dead or have expired, by the counters of its part. */
async function readFailed({ command }: Fleet['redis']['sluice']): Promise<number> {
  const [key] = (await command('KEYS', '*:n:g1')) as string[];
  const counts = (await command('HVALS', key as string)) as string[];
  return counts.reduce((sum, text) => {
    const [, , , , dead, expired] = text.split(' ').map(Number);
    return sum + (dead ?? 0) + (expired ?? 0);
  }, 0);
}

export interface Soak {
  readonly beforeBytes: number;
  /** Once a minute, with events in Redis. */
  readonly duringBytes: readonly number[];
  readonly afterBytes: number;
  /** Deliveries that are dead or have expired, because the machine was too slow. Some of them may have arrived. */
  readonly failed: number;
  readonly got: Received;
}

/** Sends events for so many minutes, and waits until they have expired. */
export async function measureSoak(
  fleet: Fleet,
  state: ControlState,
  minutes: number,
  report: (line: string) => void,
): Promise<Soak> {
  await emptyRedis(fleet.redis.sluice);
  const ports = fleet.endpointPorts.slice(0, ENDPOINTS);
  const target = await state.write(fleet.ingress.port, ports, { retentionMs: RETENTION_MS });
  const [run, count] = [nextRun(), A_MINUTE * minutes];
  const expectation: Expectation = { run, events: count, endpoints: ENDPOINTS, observed: ENDPOINTS, sick: [] };
  await sendCommand(fleet.receiver.controlPort, 'begin', expectation);
  await delay(5_000);
  const memory = () => usedMemory(fleet.redis.sluice);
  const beforeBytes = await memory();

  const uniqueKeys = sendUniqueKeys(target, performance.now() + minutes * 60_000);
  const duringBytes: number[] = [];
  let endUs = 0;
  let refused = 0;
  for (let minute = 1; minute <= minutes; minute++) {
    const first = (minute - 1) * A_MINUTE;
    const order = { target, run, connections: 10, rate: RATE, count: A_MINUTE, first, patienceMs: PATIENCE_MS };
    const sent = await sendCommand<Sent>(fleet.producer.controlPort, 'open', order satisfies OpenLoop);
    [endUs, refused] = [sent.endUs, refused + sent.refused];
    duringBytes.push(await memory());
    report(`soak, ${minute} of ${minutes} minutes: ${duringBytes.at(-1)} bytes`);
  }
  refused += await uniqueKeys;
  if (refused > 0) throw new Error(`${refused} events were refused`);
  const untilUs = endUs + PATIENCE_MS * 1_000;
  const got = await sendCommand<Received>(fleet.receiver.controlPort, 'finish', { untilUs, graceMs: 30 });
  await delay(EXPIRED_MS);
  const failed = await readFailed(fleet.redis.sluice);
  return { beforeBytes, duringBytes, afterBytes: await memory(), failed, got };
}

export function soakFigures({ beforeBytes, duringBytes, afterBytes, failed }: Soak): Figure[] {
  const settled = duringBytes.slice(Math.min(2, duringBytes.length - 1));
  const minutes = duringBytes.length;
  return [
    {
      name: 'Deliveries that expired after a minute, or failed',
      value: spreadOf([failed]),
      target: atMost(0),
      detail: 'only if the machine is overloaded',
    },
    {
      name: `Redis bytes after ${minutes} minutes of load, less those before`,
      value: spreadOf([afterBytes - beforeBytes]),
      target: atMost(MOST_LEFT),
      detail: `${beforeBytes} before, ${afterBytes} after, at ${RATE + UNIQUE_KEYS_RATE} events/s`,
    },
    {
      name: `Redis bytes in the last of ${minutes} minutes, against the third`,
      value: spreadOf([(settled.at(-1) ?? Number.NaN) / (settled[0] ?? Number.NaN)]),
      target: atMost(1.1),
      detail: `${settled[0]} and ${settled.at(-1)}, with a retention of a minute`,
    },
  ];
}

export function judgeSoak({ got, failed }: Soak): Correctness {
  return judgeRuns([{ ...got, missing: Math.max(0, got.expected - got.unique - failed) }]);
}
