import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { redisUrl } from '../../../test/support/redis/shared.ts';
import { connectRedis } from '../../redis/client.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createRoom } from './room.ts';
import { createPartWorld } from './testing/part-world.ts';
import { startProxy } from './testing/proxy.ts';
import { startSink } from './testing/sink.ts';

const soon = { timeout: 30_000, interval: 10 };

async function start() {
  const redis = await connectRedis(redisUrl(), createLogger({ level: 'silent' }));
  onTestFinished(() => redis.close());
  const world = await createPartWorld(redis, redisUrl());
  const sink = await startSink();
  await world.subscribe('a', sink, ['g0', 'g1']);
  const times = (body: string) => sink.bodies().filter(each => each === body).length;
  const isEmpty = () => vi.waitFor(async () => expect(await world.isEmpty()).toBe(true), soon);
  return { redis, world, sink, times, isEmpty };
}

const begin = [
  { kind: 'begin' },
  { kind: 'meta', field: 'cfgv', value: 'c1' },
  { kind: 'meta', field: 'state', value: 'open' },
  { kind: 'meta', field: 'maxBytes', value: String(2 ** 40) },
  { kind: 'marker' },
  { kind: 'meta', field: 'ready', value: '1' },
] as const;

test('continues with a part that is restored unchanged, and writes completed attempts', async () => {
  const { redis, world, sink, times, isEmpty } = await start();
  const answers: (() => void)[] = [];
  sink.control.script = (_arrival, response) => void answers.push(() => response.end());
  const { commands } = await world.startWorker('d1');
  const [first = ''] = await world.send('g0');
  await vi.waitFor(() => expect(answers).toHaveLength(1), soon);
  await redis.call('hset', world.keys.meta, 'gen', 'another');
  answers[0]?.();
  // The exchange returns that the part does not exist.
  const before = commands();
  await vi.waitFor(() => expect(commands()).toBeGreaterThan(before), soon);
  await delay(100);
  sink.control.script = (_arrival, response) => response.end();
  await redis.call('hset', world.keys.meta, 'gen', 'gen1');
  const [second = ''] = await world.send('g1');
  await vi.waitFor(() => expect(sink.bodies()).toContain(second), soon);
  await isEmpty();
  expect(times(first)).toBe(1);
});

test.each([
  ['lost', 'CLOSED'],
  ['removed', 'GONE'],
])('claims waiting events if a part is recreated after it was %s', async (how, word) => {
  const { redis, world, sink, isEmpty } = await start();
  await world.send('g0', 'g1');
  await redis.call('del', world.keys.meta);
  if (how === 'removed') await redis.call('hset', world.keys.meta, 'gen', '-');
  const answers: string[] = [];
  await world.startWorker('d1', ({ exchange }) => ({
    async exchange(...args) {
      const answer = await exchange(...args);
      answers.push(answer.answer);
      return answer;
    },
  }));
  await vi.waitFor(() => expect(answers).toContain(word), soon);
  await world.change(...begin);
  await vi.waitFor(() => expect(sink.arrivals).toHaveLength(2), soon);
  await isEmpty();
});

test('reports a part that is still missing to the controller, and stops without waiting for it', async () => {
  const { redis, world } = await start();
  const closed: string[] = [];
  const worker = await world.startWorker('d1', () => ({ onClosed: ({ queue }) => void closed.push(queue) }));
  await redis.call('hset', world.keys.meta, 'gen', '-');
  await redis.call('spublish', world.keys.channel, '- 0 0 1 0 0 0\n');
  await vi.waitFor(() => expect(closed).toEqual([world.part.queue]), soon);
  await worker.stop();
});

test('claims of a shard that does not respond do not use room of other parts', async () => {
  const { redis, world, sink, isEmpty } = await start();
  const other = await createPartWorld(redis, redisUrl());
  await other.subscribe('a', sink, ['o']);
  // Each workspace can have a single claim.
  const room = createRoom(3);
  const answers: (() => void)[] = [];
  sink.control.script = (_arrival, response) => void answers.push(() => response.end());
  const proxy = await startProxy(redisUrl());
  await world.startWorker('d1', () => ({ room }), proxy.url);
  await world.send('g0');
  await vi.waitFor(() => expect(sink.arrivals).toHaveLength(1), soon);
  await vi.waitFor(() => expect(room.free()).toBe(2), soon);
  await other.startWorker('d1', () => ({ room }));
  // The first exchange requests that nothing is pushed.
  await vi.waitFor(async () => expect(await redis.call('exists', other.keys.ready)).toBe(1), soon);
  proxy.pause();
  const [waiting = ''] = await other.send('o');
  sink.control.script = (_arrival, response) => response.end();
  await vi.waitFor(() => expect(sink.bodies()).toContain(waiting), soon);
  proxy.resume();
  answers[0]?.();
  await isEmpty();
  await vi.waitFor(() => expect(room.free()).toBe(3), soon);
});
