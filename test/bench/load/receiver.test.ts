import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { freePorts } from '../../support/free-port.ts';
import type { Expectation, Look, Received } from '../load.ts';
import {
  type BenchEvent,
  BUILD_MS,
  bodyOf,
  type LoadProcess,
  nowUs,
  openSocket,
  startLoad,
  writeParts,
} from './testing.ts';

const NO_CONTENT = 'HTTP/1.1 204 No Content\r\n\r\n';
let receiver: LoadProcess;
let ports: number[];
let sockets: Socket[] = [];

beforeAll(async () => {
  ports = await freePorts(3);
  receiver = await startLoad('receiver', ports);
}, BUILD_MS);

afterEach(() => {
  for (const socket of sockets) socket.destroy();
  sockets = [];
});

afterAll(() => receiver.stop());

let lastRun = 0;

/** Begins a run with one endpoint by default. Returns its number. */
async function begin(expectation: Partial<Expectation>): Promise<number> {
  const run = ++lastRun;
  await receiver.send('begin', { run, events: 10, endpoints: 1, observed: 1, sick: [], ...expectation });
  return run;
}

const finish = (untilUs = 0) => receiver.send<Received>('finish', { untilUs, graceMs: 0 });

function requestOf(event: BenchEvent, lengthName = 'content-length'): string {
  const body = bodyOf(event);
  return `POST /hook HTTP/1.1\r\nhost: a\r\nwebhook-id: b\r\n${lengthName}: ${body.length}\r\nx: y\r\n\r\n${body}`;
}

async function connectTo(endpoint: number): Promise<Socket> {
  const socket = await openSocket(ports[endpoint] as number);
  socket.on('error', () => {});
  sockets.push(socket);
  return socket;
}

/** Reads `count` responses. */
async function readResponses(socket: Socket, count = 1): Promise<void> {
  const bytes = NO_CONTENT.length * count;
  let responses = socket.read(bytes) as Buffer | null;
  // With a part of a response, a new listener for `readable` would be called at once, and nothing else would be read.
  for (; responses === null; responses = socket.read(bytes) as Buffer | null) await delay(1);
  expect(responses.toString()).toBe(NO_CONTENT.repeat(count));
}

/** Delivers events one after the other to an endpoint. */
async function deliver(endpoint: number, events: readonly BenchEvent[]): Promise<void> {
  const socket = await connectTo(endpoint);
  for (const event of events) {
    socket.write(requestOf(event));
    await readResponses(socket);
  }
}

function eventsOf(run: number, ...numbers: number[]): BenchEvent[] {
  return numbers.map(n => ({ run, sent: nowUs(), key: n % 2, n }));
}

test('a run is complete if each event has arrived at each endpoint', async () => {
  const run = await begin({ events: 4, endpoints: 2, observed: 2 });
  await deliver(0, eventsOf(run, 0, 1, 2, 3));
  await deliver(1, eventsOf(run, 1, 0, 3));
  const result = { expected: 8, duplicates: 0, outOfOrder: 0 };
  expect(await finish()).toMatchObject({ ...result, complete: false, unique: 7 });
  const finished = finish(nowUs() + 20_000_000);
  const beforeUs = nowUs();
  await deliver(1, eventsOf(run, 2));
  const got = await finished;
  expect(got).toMatchObject({ ...result, complete: true, unique: 8 });
  expect(got.lastUs).toBeGreaterThanOrEqual(beforeUs);
  expect(got.lastUs).toBeLessThanOrEqual(nowUs());
});

test('an event that arrives again is a duplicate, also after the last event', async () => {
  const run = await begin({ events: 2 });
  await deliver(0, eventsOf(run, 0, 0, 1, 0));
  expect(await finish()).toMatchObject({ complete: true, unique: 2, duplicates: 2, outOfOrder: 0 });
});

test('an event that arrives after a later event with the same group key is out of order', async () => {
  const run = await begin({ events: 6, endpoints: 2 });
  await deliver(0, eventsOf(run, 1, 0, 2, 5, 3, 4));
  expect(await finish()).toMatchObject({ unique: 6, duplicates: 0, outOfOrder: 1 });
  await deliver(1, eventsOf(run, 4, 2, 0));
  expect(await finish()).toMatchObject({ unique: 9, duplicates: 0, outOfOrder: 3 });
});

test('requests may be split over reads, and a read may contain several', async () => {
  const run = await begin({ events: 5 });
  const socket = await connectTo(0);
  const [first = '', second = '', third = '', ...more] = eventsOf(run, 0, 1, 2, 3, 4).map(event => requestOf(event));
  await writeParts(socket, [first.slice(0, 3), first.slice(3, 50), first.slice(50, 300), first.slice(300, -1)]);
  socket.write(first.slice(-1));
  await readResponses(socket);
  socket.write(second + third);
  await readResponses(socket, 2);
  await writeParts(socket, [(more[0] as string) + (more[1] as string).slice(0, 30), (more[1] as string).slice(30)]);
  await readResponses(socket, 2);
  expect(await finish()).toMatchObject({ complete: true, duplicates: 0, outOfOrder: 0 });
});

test('the content-length is found in any case, and without a space', async () => {
  const run = await begin({ events: 1 });
  const socket = await connectTo(0);
  const [event] = eventsOf(run, 0) as [BenchEvent];
  socket.write(requestOf(event, 'Content-Length'));
  await readResponses(socket);
  socket.write(requestOf(event, 'cOnTeNt-LeNgTh').replace('Th: ', 'Th:'));
  await readResponses(socket);
  expect(await finish()).toMatchObject({ unique: 1, duplicates: 1 });
});

test('events of other runs and other requests are answered but not recorded', async () => {
  const run = await begin({});
  await deliver(0, [...eventsOf(run - 1, 0, 0), ...eventsOf(run + 1, 3)]);
  const socket = await connectTo(0);
  socket.write('POST /hook HTTP/1.1\r\ncontent-length: 7\r\n\r\n{"n":1}GET / HTTP/1.1\r\n\r\n');
  await readResponses(socket, 2);
  expect(await finish()).toMatchObject({ unique: 0, duplicates: 0 });
});

test.each([
  ['number', 0, { n: 10 }],
  ['endpoint', 1, {}],
] as const)('an event of the run with an unexpected %s fails the run', async (_, endpoint, more) => {
  const run = await begin({ events: 10 });
  await deliver(endpoint, [{ run, sent: nowUs(), key: 0, n: 0, ...more }]);
  await expect(finish()).rejects.toThrow(`an unexpected event at endpoint ${endpoint}`);
  await expect(receiver.send('look', { anew: false })).rejects.toThrow('an unexpected event');
});

test('latencies are those of the observed endpoints', async () => {
  const run = await begin({ events: 2, endpoints: 2, observed: 1 });
  await deliver(1, [{ run, sent: nowUs() - 900_000_000, key: 0, n: 0 }]);
  expect(await finish()).toMatchObject({ unique: 1, p50Ms: null, p99Ms: null });
  await deliver(0, [
    { run, sent: nowUs() - 100_000_000, key: 0, n: 0 },
    { run, sent: nowUs() - 500_000_000, key: 0, n: 1 },
  ]);
  const { p50Ms, p99Ms } = await finish();
  expect(p50Ms).toBeGreaterThanOrEqual(100_000);
  expect(p50Ms).toBeLessThan(400_000);
  expect(p99Ms).toBeGreaterThanOrEqual(500_000);
  expect(p99Ms).toBeLessThan(900_000);
});

test('the time of each arrival is returned if it is wanted', async () => {
  const run = await begin({ events: 3, endpoints: 2, timed: true });
  const beforeUs = nowUs();
  await deliver(1, eventsOf(run, 0, 2));
  const { arrivedUs, lastUs } = await finish();
  expect(arrivedUs).toEqual([
    [null, null, null],
    [expect.any(Number), null, lastUs],
  ]);
  expect(arrivedUs?.[1]?.[0]).toBeGreaterThanOrEqual(beforeUs);
  await begin({ events: 3 });
  expect(await finish()).not.toHaveProperty('arrivedUs');
});

test('a look returns the arrivals since the last reset', async () => {
  const run = await begin({ endpoints: 2 });
  const look = (anew: boolean) => receiver.send<Look>('look', { anew });
  await deliver(0, [{ run, sent: nowUs() - 100_000_000, key: 0, n: 0 }]);
  const lastUs = nowUs();
  const first = await look(true);
  expect(first.p50Ms).toBeGreaterThanOrEqual(100_000);
  expect(first.endpoints.map(({ unique }) => unique)).toEqual([1, 0]);
  await deliver(0, [{ run, sent: nowUs(), key: 0, n: 1 }]);
  const second = await look(false);
  expect(second.p50Ms).toBeLessThan(100_000);
  expect(second.endpoints.map(({ unique }) => unique)).toEqual([2, 0]);
  const waitedMs = (nowUs() - lastUs) / 1_000;
  for (const { gapMs } of second.endpoints) expect(gapMs).toBeLessThanOrEqual(waitedMs);
  await new Promise(resolve => setTimeout(resolve, 50));
  for (const { gapMs } of (await look(false)).endpoints) expect(gapMs).toBeGreaterThanOrEqual(50);
});

test('an endpoint that hangs does not respond, and its connections are closed at the next run', async () => {
  const run = await begin({ endpoints: 3, sick: ['hangs', 'flooded'] });
  const socket = await connectTo(1);
  socket.on('data', () => expect.unreachable());
  socket.write(requestOf({ run, sent: 0, key: 0, n: 0 }));
  await deliver(0, eventsOf(run, 0));
  await deliver(2, eventsOf(run + 1, 0));
  expect(await finish()).toMatchObject({ unique: 1, expected: 10 });
  expect(socket.closed).toBe(false);
  const closed = once(socket, 'close');
  await begin({});
  await closed;
});

test('an endpoint that resets closes the connection when a request has arrived', async () => {
  const run = await begin({ endpoints: 2, sick: ['resets'] });
  const socket = await connectTo(1);
  socket.on('data', () => expect.unreachable());
  const request = requestOf({ run, sent: 0, key: 0, n: 0 });
  await writeParts(socket, [request.slice(0, 300)]);
  expect(socket.closed).toBe(false);
  const failed = once(socket, 'error');
  socket.write(request.slice(300));
  expect(await failed).toMatchObject([{ code: 'ECONNRESET' }]);
  expect(await finish()).toMatchObject({ unique: 0 });
});

test('a slow endpoint responds later, in order', async () => {
  const run = await begin({ endpoints: 2, sick: ['slow'], slowMs: 300 });
  const beforeUs = nowUs();
  const left = await connectTo(1);
  left.write(requestOf({ run, sent: 0, key: 0, n: 0 }));
  const socket = await connectTo(1);
  socket.write(requestOf({ run, sent: 0, key: 0, n: 1 }));
  left.destroy();
  await readResponses(socket);
  expect(nowUs() - beforeUs).toBeGreaterThanOrEqual(300_000);
  expect(await finish()).toMatchObject({ unique: 0 });
});
