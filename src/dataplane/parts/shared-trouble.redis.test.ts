import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { AttemptResult } from '../dispatcher/endpoint-client.ts';
import { PART_BODY_BYTES } from './body-reader.ts';
import { createRoom } from './room.ts';
import { useOwnRedis } from './testing/own-redis.ts';
import { createPartWorld } from './testing/part-world.ts';
import { startSink } from './testing/sink.ts';
import { READY_MS } from './watch.ts';

const soon = { timeout: 20_000, interval: 10 };
/** The claims of a dispatcher, and the most of one part. */
const [ROOM, MOST_OF_A_PART] = [4_096, 2_048];

/** The size of the largest event. */
const LARGE = 256 * 1_024;

const own = useOwnRedis();

test('slow endpoints of one part leave room for the events of other parts', async () => {
  const busy = await createPartWorld(own.redis, own.server.url);
  const calm = await createPartWorld(own.redis, own.server.url);
  const sink = await startSink();
  await busy.subscribe('slow', sink, ['s'], { cap: 10_000, unordered: true });
  await calm.subscribe('a', sink, ['k']);
  const { promise: answered, resolve: answer } = Promise.withResolvers<AttemptResult>();
  const room = createRoom(ROOM);
  await busy.startWorker('d1', () => ({ room, attempt: () => answered }));
  await calm.startWorker('d1', () => ({ room }));
  const delivered = { outcome: 'delivered', reason: 'http_2xx', status: 200, latencyMs: 1 } as const;
  onTestFinished(() => answer({ ...delivered, responseBody: Buffer.alloc(0), truncated: false }));
  // More than there is room for.
  for (let i = 0; i < 80; i++) await busy.send(...Array.from({ length: 64 }, () => 's'));
  const claims = async () => Number(await own.redis.call('hlen', busy.keys.claims));
  await vi.waitFor(async () => expect(await claims()).toBe(MOST_OF_A_PART), soon);
  // Nothing is pushed any more to a worker that was idle for this time.
  await delay(READY_MS + 100);
  const [body] = await calm.send('k');
  await vi.waitFor(() => expect(sink.bodies()).toEqual([body]), soon);
  expect(await claims()).toBe(MOST_OF_A_PART);
});

test('large bodies of slow endpoints only use a part of the memory, and small bodies are still sent', async () => {
  const world = await createPartWorld(own.redis, own.server.url);
  const sink = await startSink();
  await world.subscribe('slow', sink, ['s'], { cap: 10_000, unordered: true });
  await world.subscribe('a', sink, ['k']);
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
  const delivered = { outcome: 'delivered', reason: 'http_2xx', status: 200, latencyMs: 1 } as const;
  const bodyRoom = createRoom(2 * PART_BODY_BYTES);
  let [inMemory, most] = [0, 0];
  await world.startWorker('d1', ({ attempt }) => ({
    bodyRoom,
    async attempt(request) {
      if (request.body.length < LARGE) return attempt(request);
      inMemory += request.body.length;
      most = Math.max(most, inMemory);
      await answered;
      inMemory -= request.body.length;
      return { ...delivered, responseBody: Buffer.alloc(0), truncated: false };
    },
  }));
  const events = (2 * PART_BODY_BYTES) / LARGE;
  for (let i = 0; i < events; i++) {
    await world.ingest({ groupKey: 's', meta: '{"s":"/orders"}', body: Buffer.alloc(LARGE) });
  }
  await vi.waitFor(() => expect(inMemory).toBe(PART_BODY_BYTES), soon);
  const [body] = await world.send('k');
  await vi.waitFor(() => expect(sink.bodies()).toEqual([body]), soon);
  answer();
  await vi.waitFor(async () => expect((await world.counts('slow'))[3]).toBe(events), soon);
  expect(most).toBe(PART_BODY_BYTES);
  expect(bodyRoom.free()).toBe(2 * PART_BODY_BYTES);
});

test('an event that cannot be read stops its own lane only, and is not claimed again all the time', async () => {
  const world = await createPartWorld(own.redis, own.server.url);
  const sink = await startSink();
  await world.subscribe('a', sink, ['bad', 'g0', 'g1']);
  let claimed = 0;
  await world.startWorker('d1', ({ exchange }) => ({
    async exchange(part, holding, completions, most) {
      claimed += completions.filter(({ outcome }) => outcome === 'released').length;
      return exchange(part, holding, completions, most);
    },
  }));
  await world.ingest({ groupKey: 'bad', meta: 'no JSON', body: Buffer.from('damaged') });
  const bodies = await world.send('g0', 'bad', 'g1', 'g0');
  const others = bodies.filter(body => !body.startsWith('bad'));
  await vi.waitFor(() => expect(sink.bodies().toSorted()).toEqual(others.toSorted()), soon);
  expect(sink.of('g0')).toEqual([others[0], others[2]]);
  const [before, sinceMs] = [claimed, performance.now()];
  await delay(2_000);
  const most = Math.ceil((performance.now() - sinceMs) / 500) + 1;
  expect(claimed - before).toBeLessThanOrEqual(most);
  // Nothing is lost: the event waits in its lane, and the one behind it.
  expect((await world.counts('a')).slice(1)).toEqual([5, expect.any(Number), 3, 0, 0]);
});
