import { setTimeout as delay } from 'node:timers/promises';
import { serveCommands } from './commands.ts';
import { type Connection, openConnection } from './connection.ts';
import { quantile } from './report/statistics.ts';
import { buildRequest, GROUP_KEYS, nowUs, stamp, type Target } from './wire.ts';

/**
 * The load generator: `producer.ts <control port>`. Events of a group key are sent in order, because they use the same
 * connection, which has at most one request in progress.
 */

export interface ClosedLoop {
  readonly target: Target;
  readonly run: number;
  readonly connections: number;
  readonly durationMs: number;
}

export interface OpenLoop {
  readonly target: Target;
  readonly run: number;
  readonly connections: number;
  /** Events per second, evenly spaced and independent of the responses. */
  readonly rate: number;
  readonly count: number;
  /** The number of the first event, which is a multiple of the number of group keys. Default: 0. */
  readonly first?: number;
  /** The time to wait for responses after the last planned time. */
  readonly patienceMs: number;
  /** Whether to return the time of each response. */
  readonly timed?: boolean;
}

export interface Sent {
  readonly accepted: number;
  readonly refused: number;
  readonly elapsedMs: number;
  /** The planned time of the last event, in µs of the monotonic clock (open loop only). */
  readonly endUs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** The time of the response to each event, in µs of the monotonic clock. Only present if `timed` is set. */
  readonly answeredUs?: number[];
}

interface Lane {
  connection: Connection;
  busy: boolean;
  /** The numbers of events that are due but have not been sent (open loop only). */
  readonly waiting: number[];
  head: number;
}

/** Returns a request for each group key. A group key belongs to the lane with its number modulo the number of lanes. */
function requestsOf(target: Target, connections: number): Buffer[] {
  if (GROUP_KEYS % connections !== 0) throw new Error(`${GROUP_KEYS} keys do not divide by ${connections} connections`);
  return Array.from({ length: GROUP_KEYS }, (_, key) => buildRequest(target, key));
}

async function openLanes(
  target: Target,
  connections: number,
  onAnswer: (lane: number, status: number) => void,
  onError: (error: Error) => void,
): Promise<Lane[]> {
  return Promise.all(
    Array.from({ length: connections }, async (_, lane) => ({
      connection: await openConnection(target.port, status => onAnswer(lane, status), onError),
      busy: false,
      waiting: [],
      head: 0,
    })),
  );
}

async function runClosed({ target, run, connections, durationMs }: ClosedLoop): Promise<Sent> {
  const requests = requestsOf(target, connections);
  const latencies: number[] = [];
  let accepted = 0;
  let refused = 0;
  let n = 0;
  let open = 0;
  let endUs = Number.POSITIVE_INFINITY;
  const sentUs: number[] = [];
  const turns = Array.from({ length: connections }, () => 0);
  const { promise: finished, resolve: finish, reject: fail } = Promise.withResolvers<void>();
  const lanes = await openLanes(
    target,
    connections,
    (lane, status) => {
      const now = nowUs();
      latencies.push(now - (sentUs[lane] as number));
      if (status >= 200 && status < 300) accepted++;
      else refused++;
      open--;
      if (now < endUs) send(lane, now);
      else if (open === 0) finish();
    },
    fail,
  );
  function send(lane: number, now: number): void {
    const turn = (turns[lane] as number) % (GROUP_KEYS / connections);
    turns[lane] = turn + 1;
    const request = requests[lane + turn * connections] as Buffer;
    stamp(request, run, now, n++);
    sentUs[lane] = now;
    open++;
    (lanes[lane] as Lane).connection.send(request);
  }
  const startUs = nowUs();
  endUs = startUs + durationMs * 1_000;
  for (let lane = 0; lane < connections; lane++) send(lane, startUs);
  await finished;
  const elapsedMs = (nowUs() - startUs) / 1_000;
  for (const lane of lanes) lane.connection.close();
  return { accepted, refused, elapsedMs, endUs, ...percentiles(latencies) };
}

async function runOpen({
  target,
  run,
  connections,
  rate,
  count,
  first = 0,
  patienceMs,
  timed,
}: OpenLoop): Promise<Sent> {
  const requests = requestsOf(target, connections);
  const latencies: number[] = [];
  let accepted = 0;
  let refused = 0;
  const answeredUs: number[] = [];
  const underWay = Array.from({ length: connections }, () => 0);
  const { promise: finished, resolve: finish, reject: fail } = Promise.withResolvers<void>();
  let startUs = 0;
  const plannedUs = (n: number) => startUs + Math.round((n * 1e6) / rate);
  const lanes = await openLanes(
    target,
    connections,
    (index, status) => {
      const lane = lanes[index] as Lane;
      if (!lane.busy) return fail(new Error(`a response of ${status} to no request`));
      const n = underWay[index] as number;
      const now = nowUs();
      latencies.push(now - plannedUs(n));
      answeredUs[n] = now;
      if (status >= 200 && status < 300) accepted++;
      else refused++;
      lane.busy = false;
      pump(index, lane);
      if (accepted + refused === count) finish();
    },
    fail,
  );
  function pump(index: number, lane: Lane): void {
    const n = lane.waiting[lane.head];
    if (lane.busy || n === undefined) return;
    lane.head++;
    lane.busy = true;
    underWay[index] = n;
    const request = requests[n % GROUP_KEYS] as Buffer;
    stamp(request, run, plannedUs(n), first + n);
    lane.connection.send(request);
  }
  startUs = nowUs() + 5_000;
  const endUs = plannedUs(count - 1);
  for (let n = 0; n < count; ) {
    const now = nowUs();
    for (; n < count && plannedUs(n) <= now; n++) {
      const index = (n % GROUP_KEYS) % connections;
      const lane = lanes[index] as Lane;
      lane.waiting.push(n);
      pump(index, lane);
    }
    await delay(1);
  }
  await Promise.race([finished, delay(patienceMs)]);
  const elapsedMs = (nowUs() - startUs) / 1_000;
  for (const lane of lanes) lane.connection.close();
  return { accepted, refused, elapsedMs, endUs, ...percentiles(latencies), ...(timed ? { answeredUs } : {}) };
}

function percentiles(latenciesUs: number[]): { p50Ms: number; p99Ms: number } {
  return { p50Ms: quantile(latenciesUs, 0.5) / 1_000, p99Ms: quantile(latenciesUs, 0.99) / 1_000 };
}

serveCommands(Number(process.argv[2]), { closed: runClosed, open: runOpen });
