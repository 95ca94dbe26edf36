import { createServer, type Server, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../support/free-port.ts';
import type { ClosedLoop, OpenLoop, Sent } from '../load.ts';
import { type BenchEvent, BUILD_MS, bodyOf, type LoadProcess, nowUs, startLoad, writeParts } from './testing.ts';

let generator: LoadProcess;
let server: Server | undefined;
let sockets: Socket[] = [];

beforeAll(async () => {
  generator = await startLoad('generator');
}, BUILD_MS);

afterEach(() => {
  for (const socket of sockets) socket.destroy();
  sockets = [];
  server?.close();
  server = undefined;
});

afterAll(() => generator.stop());

interface Arrival extends BenchEvent {
  readonly connection: number;
  readonly atUs: number;
  readonly text: string;
}

const ACCEPTED = 'HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}';

/**
 * Starts a server that calls `respond` with each request. A request must not arrive while another one is in progress on
 * its connection, because each request is expected to be a chunk.
 */
async function startServer(respond: (socket: Socket, arrival: Arrival) => unknown) {
  const arrivals: Arrival[] = [];
  const port = await freePort();
  server = createServer({ noDelay: true }, socket => {
    const connection = sockets.push(socket) - 1;
    socket.on('error', () => {});
    let rest = '';
    socket.on('data', chunk => {
      rest += chunk.toString();
      const [head = '', body = ''] = rest.split('\r\n\r\n');
      if (body.length < 1_024) return;
      const text = rest;
      rest = '';
      expect(text).toHaveLength(head.length + 4 + 1_024);
      const fields = JSON.parse(body) as Record<keyof BenchEvent, string>;
      const [run, sent, key, n] = [fields.run, fields.sent, fields.key, fields.n].map(Number) as [
        number,
        number,
        number,
        number,
      ];
      const arrival = { run, sent, key, n, connection, atUs: nowUs(), text };
      arrivals.push(arrival);
      respond(socket, arrival);
    });
  });
  await new Promise<void>(resolve => server?.listen(port, '127.0.0.1', resolve));
  return { arrivals, target: { port, path: '/events', headers: { 'x-api-key': 'k' } } };
}

const accept = (socket: Socket) => socket.write(ACCEPTED);

function open(order: Partial<OpenLoop> & Pick<OpenLoop, 'target'>): Promise<Sent> {
  const all = { run: 7, connections: 1, rate: 1_000, count: 1, patienceMs: 20_000, ...order };
  return generator.send<Sent>('open', all);
}

test('requests have these bytes, and the planned time is that of the monotonic clock of other processes', async () => {
  const { arrivals, target } = await startServer(accept);
  const beforeUs = nowUs();
  const sent = await open({ target, first: 65_400, count: 43, rate: 10_000 });
  const afterUs = nowUs();
  const last = arrivals.at(-1) as Arrival;
  const head = [
    'POST /events HTTP/1.1',
    `host: 127.0.0.1:${target.port}`,
    'content-type: application/json',
    'content-length: 1024',
    'x-sluice-group-key: key-042',
    'x-api-key: k',
  ];
  expect(last.text).toBe(`${head.join('\r\n')}\r\n\r\n${bodyOf({ run: 7, sent: sent.endUs, key: 42, n: 65_442 })}`);
  expect(sent.endUs).toBeGreaterThan(beforeUs);
  expect(sent.endUs).toBeLessThan(afterUs);
});

test('an open loop sends evenly spaced events when they are due, in order for each group key', async () => {
  const { arrivals, target } = await startServer(accept);
  const sent = await open({ target, connections: 50, rate: 3_000, count: 600, timed: true });
  expect(sent).toMatchObject({ accepted: 600, refused: 0 });
  const inOrder = arrivals.toSorted((a, b) => a.n - b.n);
  expect(inOrder.map(({ n }) => n)).toEqual(Array.from({ length: 600 }, (_, n) => n));
  const startUs = sent.endUs - Math.round((599 * 1e6) / 3_000);
  const connectionOf = new Map<number, number>();
  const newest = new Map<number, number>();
  for (const { n, key, connection, sent: plannedUs, atUs } of arrivals) {
    expect(key).toBe(n % 100);
    expect(plannedUs).toBe(startUs + Math.round((n * 1e6) / 3_000));
    expect(atUs).toBeGreaterThanOrEqual(plannedUs);
    expect(connectionOf.get(key) ?? connection).toBe(connection);
    expect(newest.get(key) ?? -1).toBeLessThan(n);
    connectionOf.set(key, connection);
    newest.set(key, n);
  }
  expect(new Set(connectionOf.values()).size).toBe(50);
  const latencies = inOrder.map(({ n, sent: plannedUs }) => (sent.answeredUs?.[n] as number) - plannedUs);
  for (const { n, atUs } of inOrder) expect(sent.answeredUs?.[n]).toBeGreaterThanOrEqual(atUs);
  const sorted = latencies.toSorted((a, b) => a - b);
  expect([sent.p50Ms, sent.p99Ms]).toEqual([(sorted[299] as number) / 1_000, (sorted[593] as number) / 1_000]);
});

test('a connection has one request in progress while others are due', async () => {
  let busy = false;
  const { arrivals, target } = await startServer(socket => {
    expect(busy).toBe(false);
    busy = true;
    setTimeout(() => {
      busy = false;
      socket.write(ACCEPTED);
    }, 5);
  });
  expect(await open({ target, rate: 100_000, count: 20 })).toMatchObject({ accepted: 20, refused: 0 });
  expect(arrivals.map(({ n }) => n)).toEqual(Array.from({ length: 20 }, (_, n) => n));
});

test('statuses from 200 to 299 are accepted, with and without a body, and all others are refused', async () => {
  const answers = [
    ACCEPTED,
    'HTTP/1.1 204 No Content\r\n\r\n',
    'HTTP/1.1 429 Slow Down\r\nx-a: b\r\ncontent-length: 3\r\n\r\nno\n',
  ];
  const { target } = await startServer((socket, { n }) => socket.write(answers[n % 3] as string));
  expect(await open({ target, count: 10 })).toMatchObject({ accepted: 7, refused: 3 });
});

test('a response may be split over reads', async () => {
  const cuts = [1, 20, 30, ACCEPTED.length - 4, ACCEPTED.length - 1];
  const { target } = await startServer((socket, { n }) =>
    writeParts(socket, [ACCEPTED.slice(0, cuts[n]), ACCEPTED.slice(cuts[n])]),
  );
  expect(await open({ target, count: cuts.length })).toMatchObject({ accepted: cuts.length, refused: 0 });
});

test('a closed loop sends the next event after each response, with all group keys in turn', async () => {
  const { arrivals, target } = await startServer(accept);
  const order: ClosedLoop = { target, run: 3, connections: 50, durationMs: 300 };
  const sent = await generator.send<Sent>('closed', order);
  expect(sent).toMatchObject({ accepted: arrivals.length, refused: 0 });
  expect(sent.elapsedMs).toBeGreaterThanOrEqual(300);
  expect(arrivals.map(({ n }) => n).toSorted((a, b) => a - b)).toEqual(arrivals.map((_, n) => n));
  const first = arrivals.filter(({ connection }) => connection === arrivals[0]?.connection);
  const key = first[0]?.key as number;
  expect(first.map(each => each.key)).toEqual(first.map((_, turn) => (turn % 2 === 0 ? key : key + 50)));
});

test('events without a response count as neither accepted nor refused', async () => {
  const { target } = await startServer((socket, { n }) => (n < 2 ? socket.write(ACCEPTED) : undefined));
  const sent = await open({ target, count: 5, connections: 5, patienceMs: 2_000, timed: true });
  expect(sent).toMatchObject({ accepted: 2, refused: 0 });
  expect(sent.answeredUs?.map(at => at === null)).toEqual([false, false, true, true, true]);
});

test('several loads run at the same time', async () => {
  const { arrivals, target } = await startServer(accept);
  const all = await Promise.all([1, 2, 3].map(run => open({ target, run, count: 100, connections: 10 })));
  expect(all.map(({ accepted }) => accepted)).toEqual([100, 100, 100]);
  for (const run of [1, 2, 3]) expect(arrivals.filter(each => each.run === run)).toHaveLength(100);
});

test.each([
  ['two responses to a request', (socket: Socket) => socket.write(ACCEPTED + ACCEPTED), 'a response to no request'],
  ['something else', (socket: Socket) => socket.write('SSH-2.0-x\r\n\r\n'), 'not a response'],
  ['a closed connection', (socket: Socket) => socket.end(), 'the server closed the connection'],
  ['a reset connection', (socket: Socket) => socket.resetAndDestroy(), 'connection reset by peer'],
])('%s fails the run', async (_, respond, message) => {
  const { target } = await startServer((socket, { key }) => (key === 0 ? respond(socket) : accept(socket)));
  await expect(open({ target, count: 1 })).rejects.toThrow(message);
  await expect(generator.send('closed', { target, run: 0, connections: 100, durationMs: 20_000 })).rejects.toThrow(
    message,
  );
});

test('a response before a request fails the run', async () => {
  const { target } = await startServer((socket, { n }) => n === 0 && writeParts(socket, [ACCEPTED, ACCEPTED]));
  // The second event is due after 50 s.
  await expect(open({ target, rate: 0.02, count: 2 })).rejects.toThrow('a response to no request');
});

test('a port on which no process listens fails the run', async () => {
  const target = { port: await freePort(), path: '/events', headers: {} };
  await expect(open({ target })).rejects.toThrow(`cannot connect to port ${target.port}: connection refused`);
});

test('a wrong command fails', async () => {
  const { target } = await startServer(accept);
  await expect(generator.send('opened')).rejects.toThrow('there is no command opened');
  await expect(open({ target, connections: 3 })).rejects.toThrow('100 keys do not divide by 3 connections');
  await expect(generator.send('open', { target, rates: 3 })).rejects.toThrow('unknown field "rates"');
});
