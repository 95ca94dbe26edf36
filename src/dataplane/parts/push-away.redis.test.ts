import { expect, test, vi } from 'vitest';
import { useOwnRedis } from './testing/own-redis.ts';
import { createPartWorld } from './testing/part-world.ts';
import { startSink } from './testing/sink.ts';

const soon = { timeout: 10_000, interval: 10 };

const own = useOwnRedis();

test('records results and sends heartbeats while Redis accepts no connection for pushes', async () => {
  const world = await createPartWorld(own.redis, own.server.url);
  const sink = await startSink();
  await world.subscribe('a', sink, ['g0']);
  const answers: (() => void)[] = [];
  sink.control.script = (_arrival, response) => void answers.push(() => response.end());
  let answersToLose = 0;
  await world.startWorker('d1', ({ exchange }) => ({
    async exchange(...call) {
      const answer = await exchange(...call);
      if (answersToLose-- > 0) throw new Error('the answer was lost');
      return answer;
    },
  }));
  await world.send('g0');
  await vi.waitFor(() => expect(answers).toHaveLength(1), soon);
  const { redis } = own;
  const [, most] = (await redis.call('config', 'get', 'maxclients')) as string[];
  await redis.call('config', 'set', 'maxclients', 1);
  await redis.callAll('client', 'kill', 'type', 'pubsub');
  answersToLose = 1;
  await vi.waitFor(() => expect(answersToLose).toBeLessThan(1), soon);
  answers[0]?.();
  await vi.waitFor(async () => expect((await world.counts('a'))[3]).toBe(1), soon);
  await redis.call('config', 'set', 'maxclients', String(most));
  sink.control.script = (_arrival, response) => response.end();
  const [body] = await world.send('g0');
  await vi.waitFor(() => expect(sink.bodies()).toContain(body), soon);
  expect(sink.arrivals).toHaveLength(2);
}, 30_000);
