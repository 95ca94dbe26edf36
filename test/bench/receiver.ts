import { createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { serveCommands } from './commands.ts';
import { contentLength } from './connection.ts';
import { quantile } from './report/statistics.ts';
import { GROUP_KEYS, nowUs, readField } from './wire.ts';

/**
 * The partners' endpoints, with a port each: `receiver.ts <control port> <port>…`. Responds with 204 immediately,
 * records the time between the planned send and the arrival of each event, and checks order and completeness.
 */

/**
 * - hangs: accepts connections but never responds.
 * - slow: responds after 14 s.
 * - dead: no process listens on the port.
 * - resets: closes the connection when a request has arrived.
 * - flooded: healthy, but receives unexpected events.
 */
export type Sickness = 'hangs' | 'slow' | 'dead' | 'resets' | 'flooded';

/** The time that a slow endpoint takes to respond, which is less than the timeout of 15 s. */
const SLOW_MS = 14_000;

export interface Expectation {
  readonly run: number;
  /** The number of events for each endpoint. */
  readonly events: number;
  /** The number of endpoints in this run. */
  readonly endpoints: number;
  /** The number of endpoints, from the first one, whose latency is measured. */
  readonly observed: number;
  /** The sicknesses of the last endpoints. */
  readonly sick: readonly Sickness[];
  /** Whether to return the time of each arrival. */
  readonly timed?: boolean;
}

/** The deliveries that have arrived at healthy endpoints. */
export interface Received {
  readonly complete: boolean;
  readonly unique: number;
  readonly expected: number;
  readonly duplicates: number;
  /** The number of events that arrived at an endpoint after a later event with the same group key. */
  readonly outOfOrder: number;
  /** The time of the last arrival, in µs of the monotonic clock. */
  readonly lastUs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** The time of each arrival in µs of the monotonic clock, by endpoint and event. Only present if `timed` is set. */
  readonly arrivedUs?: number[][];
}

/** The arrivals since the last reset. */
export interface Look {
  /** The latency of the observed endpoints. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly endpoints: readonly {
    /** The number of arrivals since the start of the run. */
    readonly unique: number;
    /** The longest time without an arrival. */
    readonly gapMs: number;
  }[];
}

const NO_CONTENT = Buffer.from('HTTP/1.1 204 No Content\r\n\r\n');
const HEAD_END = Buffer.from('\r\n\r\n');

let expectation: Expectation = { run: 0, events: 0, endpoints: 0, observed: 0, sick: [] };
let expected = 0;
let seen: Uint8Array[] = [];
let newest: Int32Array[] = [];
let latencies: number[] = [];
let arrivedUs: number[][] = [];
let unique = 0;
let duplicates = 0;
let outOfOrder = 0;
let lastUs = 0;
let arrivals: { unique: number; lastUs: number; gapUs: number }[] = [];
const hung = new Set<Socket>();

function record(endpoint: number, bytes: Buffer, body: number): void {
  if (readField(bytes, body, 'run') !== expectation.run) return;
  const n = readField(bytes, body, 'n');
  const key = readField(bytes, body, 'key');
  const at = nowUs();
  const mine = seen[endpoint] as Uint8Array;
  if (mine[n] === 1) {
    duplicates++;
    return;
  }
  mine[n] = 1;
  const last = newest[endpoint] as Int32Array;
  if (n < (last[key] as number)) outOfOrder++;
  else last[key] = n;
  unique++;
  if (endpoint < expectation.observed) latencies.push(at - readField(bytes, body, 'sent'));
  lastUs = at;
  if (expectation.timed) (arrivedUs[endpoint] as number[])[n] = at;
  const arrival = arrivals[endpoint];
  if (arrival === undefined) return;
  arrival.unique++;
  arrival.gapUs = Math.max(arrival.gapUs, at - arrival.lastUs);
  arrival.lastUs = at;
}

function sicknessOf(endpoint: number): Sickness | undefined {
  const { sick, endpoints } = expectation;
  return endpoint < endpoints ? sick[endpoint - (endpoints - sick.length)] : undefined;
}

function answerLate(socket: Socket): void {
  setTimeout(() => {
    if (!socket.destroyed) socket.write(NO_CONTENT);
  }, SLOW_MS).unref();
}

function serveEndpoint(endpoint: number, port: number): void {
  const server = createServer({ noDelay: true }, socket => {
    let rest: Buffer | undefined;
    socket.on('error', () => {});
    socket.on('close', () => hung.delete(socket));
    socket.on('data', chunk => {
      let bytes = rest === undefined ? chunk : Buffer.concat([rest, chunk]);
      rest = undefined;
      for (;;) {
        const head = bytes.indexOf(HEAD_END);
        if (head < 0) break;
        const body = head + HEAD_END.length;
        const end = body + contentLength(bytes, head);
        if (bytes.length < end) break;
        const sickness = sicknessOf(endpoint);
        if (sickness === 'resets') {
          socket.resetAndDestroy();
          return;
        }
        if (sickness === 'hangs' || sickness === 'slow') {
          hung.add(socket);
          if (sickness === 'slow') answerLate(socket);
        } else {
          record(endpoint, bytes, body);
          socket.write(NO_CONTENT);
        }
        if (bytes.length === end) return;
        bytes = bytes.subarray(end);
      }
      rest = bytes;
    });
  });
  server.listen(port, '127.0.0.1', 4_096);
}

function begin(next: Expectation): void {
  for (const socket of hung) socket.destroy();
  hung.clear();
  expectation = next;
  expected = next.events * (next.endpoints - next.sick.length);
  seen = Array.from({ length: next.endpoints }, () => new Uint8Array(next.events));
  newest = Array.from({ length: next.endpoints }, () => new Int32Array(GROUP_KEYS).fill(-1));
  latencies = [];
  arrivedUs = Array.from({ length: next.endpoints }, () => []);
  unique = 0;
  duplicates = 0;
  outOfOrder = 0;
  lastUs = 0;
  arrivals = Array.from({ length: next.endpoints }, () => ({ unique: 0, lastUs: nowUs(), gapUs: 0 }));
}

/** Returns the arrivals since the last reset. Resets the counts if `anew` is set. */
function look({ anew }: { anew: boolean }): Look {
  const now = nowUs();
  const seen: Look = {
    p50Ms: quantile(latencies, 0.5) / 1_000,
    p99Ms: quantile(latencies, 0.99) / 1_000,
    endpoints: arrivals.map(each => ({
      unique: each.unique,
      gapMs: Math.max(each.gapUs, now - each.lastUs) / 1_000,
    })),
  };
  if (anew) {
    latencies = [];
    for (const arrival of arrivals) Object.assign(arrival, { lastUs: now, gapUs: 0 });
  }
  return seen;
}

function isComplete(): boolean {
  return unique === expected;
}

/** Waits until all events have arrived, at most until `untilUs`, and then for `graceMs` to detect duplicates. */
async function finish({ untilUs, graceMs }: { untilUs: number; graceMs: number }): Promise<Received> {
  while (!isComplete() && nowUs() < untilUs) await delay(10);
  await delay(graceMs);
  return {
    complete: isComplete(),
    unique,
    expected,
    duplicates,
    outOfOrder,
    lastUs,
    p50Ms: quantile(latencies, 0.5) / 1_000,
    p99Ms: quantile(latencies, 0.99) / 1_000,
    ...(expectation.timed ? { arrivedUs } : {}),
  };
}

const [controlPort, ...ports] = process.argv.slice(2).map(Number);
ports.forEach((port, endpoint) => serveEndpoint(endpoint, port));
serveCommands(controlPort as number, { begin, look, finish });
