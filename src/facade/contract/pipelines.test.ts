import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createPipelines, MOST_PIPELINED, MOST_PIPELINED_CHARACTERS } from './pipelines.ts';

const requests = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, i) => `GET /${from + i} HTTP/1.1\r\nHost: x\r\n\r\n`).join('');

let started: { url: string; response: ServerResponse }[];
let closed: string[];
let received: string;
let socket: Socket;
let server: ReturnType<typeof createServer>;

beforeEach(async () => {
  [started, closed, received] = [[], [], ''];
  const [startedHere, closedHere] = [started, closed];
  const inTurn = createPipelines();
  server = createServer((request, response) =>
    inTurn(request, response, () => {
      const url = request.url ?? '';
      response.once('close', () => closedHere.push(url));
      startedHere.push({ url, response });
    }),
  );
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.on('data', chunk => (received += chunk.toString('latin1')));
  socket.on('error', () => {});
});
afterEach(() => {
  socket.destroy();
  server.close();
});

const until = (isDone: () => boolean) => expect.poll(isDone, { timeout: 15_000, interval: 5 }).toBe(true);
const urls = () => started.map(({ url }) => url);

test('requests of a connection are started after the response to the one before', async () => {
  socket.write(requests(1, 3));
  for (const url of ['/1', '/2', '/3']) {
    await until(() => started.length > 0 && started.at(-1)?.url === url);
    expect(urls().at(-1)).toBe(url);
    started.at(-1)?.response.end(url);
  }
  await until(() => received.endsWith('/3'));
  expect(urls()).toEqual(['/1', '/2', '/3']);
  socket.write(requests(4, 4));
  await until(() => started.length === 4);
});

test('if a client disconnects, its waiting requests are not started, and all that were are closed', async () => {
  socket.write(requests(1, 5));
  await until(() => started.length > 0);
  socket.destroy();
  await until(() => closed.length > 0);
  for (const { response } of started) response.end();
  await new Promise(resolve => setTimeout(resolve, 50));
  expect([urls(), closed]).toEqual([['/1'], ['/1']]);
});

test('a request that has started does not count as waiting', async () => {
  socket.write(requests(1, MOST_PIPELINED + 1));
  await until(() => started.length > 0);
  started[0]?.response.end('/1');
  await until(() => started.length > 1);
  socket.write(requests(MOST_PIPELINED + 2, MOST_PIPELINED + 2));
  for (let n = 1; n <= MOST_PIPELINED + 1; n++) {
    await until(() => started.length > n);
    started[n]?.response.end();
  }
  expect(urls().at(-1)).toBe(`/${MOST_PIPELINED + 2}`);
});

test('a connection with too many waiting requests is closed', async () => {
  socket.write(requests(1, MOST_PIPELINED + 1));
  await until(() => started.length > 0);
  await new Promise(resolve => setTimeout(resolve, 50));
  expect(closed).toEqual([]);
  socket.write(requests(MOST_PIPELINED + 2, MOST_PIPELINED + 2));
  await until(() => closed.length > 0);
  expect(urls()).toEqual(['/1']);
});

test('a connection whose waiting requests have large headers is closed', async () => {
  const large = (n: number) =>
    requests(n, n).replace('x\r\n', `x\r\nA: ${'a'.repeat(MOST_PIPELINED_CHARACTERS / 8)}\r\n`);
  const sendLarge = (from: number, to: number) => {
    for (let n = from; n <= to; n++) socket.write(large(n));
  };
  // Seven are waiting each time, because those that were started no longer count.
  sendLarge(1, 8);
  await until(() => started.length > 0);
  for (let n = 1; n <= 7; n++) {
    started[n - 1]?.response.end();
    await until(() => started.length > n);
  }
  sendLarge(9, 15);
  await new Promise(resolve => setTimeout(resolve, 50));
  expect(closed).not.toContain('/8');
  sendLarge(16, 16);
  await until(() => closed.includes('/8'));
  expect(urls().at(-1)).toBe('/8');
});
