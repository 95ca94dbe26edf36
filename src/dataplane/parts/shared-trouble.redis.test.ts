import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { AttemptResult } from '../dispatcher/endpoint-client.ts';
import type { PartWorkerDeps } from './part-worker-deps.ts';
import { createRoom } from './room.ts';
import { useOwnRedis } from './testing/own-redis.ts';
import { createPartWorld } from './testing/part-world.ts';
import { type Sink, startSink } from './testing/sink.ts';
import { READY_MS } from './watch.ts';

const soon = { timeout: 20_000, interval: 10 };
/** The number of claims of a dispatcher, and the maximum for one part. */
const [ROOM, MOST] = [4_608, 2_048];
/** A number of events that exceeds the room. */
const BATCHES = 80;
/** The bytes of large bodies for a dispatcher, and the maximum for one workspace. */
const [BODY_ROOM, MOST_BYTES] = [64 * 2 ** 20, 32 * 2 ** 20];

/** The size of the largest event. */
const LARGE = 256 * 1_024;

const own = useOwnRedis();

const delivered = { outcome: 'delivered', reason: 'http_2xx', status: 200, latencyMs: 1 } as const;

/** An endpoint that does not respond before the test calls `answer`. */
function createHanging() {
  const { promise: answered, resolve } = Promise.withResolvers<AttemptResult>();
  const answer = () => resolve({ ...delivered, responseBody: Buffer.alloc(0), truncated: false });
  return { attempt: () => answered, answer };
}

async function startSlow(sink: Sink, tenant?: string) {
  const slow = await createPartWorld(own.redis, own.server.url, tenant);
  await slow.subscribe('slow', sink, ['s'], { cap: 10_000, unordered: true });
  const claims = async () => Number(await own.redis.call('hlen', slow.keys.claims));
  const flood = async (batches = BATCHES) => {
    for (let i = 0; i < batches; i++) await slow.send(...Array.from({ length: 64 }, () => 's'));
  };
  return { ...slow, claims, flood };
}

test('slow endpoints of one part leave room for the events of other parts', async () => {
  const sink = await startSink();
  const busy = await startSlow(sink);
  const calm = await createPartWorld(own.redis, own.server.url);
  await calm.subscribe('a', sink, ['k']);
  const room = createRoom(ROOM);
  const { attempt, answer } = createHanging();
  await busy.startWorker('d1', () => ({ room, attempt }));
  await calm.startWorker('d1', () => ({ room }));
  onTestFinished(answer);
  await busy.flood();
  await vi.waitFor(async () => expect(await busy.claims()).toBe(MOST), soon);
  // After this time, nothing is pushed to an idle worker.
  await delay(READY_MS + 100);
  const [body] = await calm.send('k');
  await vi.waitFor(() => expect(sink.bodies()).toEqual([body]), soon);
  expect(await busy.claims()).toBe(MOST);
});

test('slow endpoints of several parts leave room for the events of other workspaces', async () => {
  const sink = await startSink();
  const first = await startSlow(sink);
  const second = await startSlow(sink, first.part.tenant);
  const calm = await createPartWorld(own.redis, own.server.url);
  const keys = Array.from({ length: 300 }, (_, i) => `k${i}`);
  await calm.subscribe('a', sink, keys, { cap: 1_000 });
  const room = createRoom(ROOM);
  const { attempt, answer } = createHanging();
  for (const part of [first, second]) await part.startWorker('d1', () => ({ room, attempt }));
  await calm.startWorker('d1', () => ({ room }));
  onTestFinished(answer);
  await Promise.all([first.flood(), second.flood()]);
  await vi.waitFor(
    async () => expect((await first.claims()) + (await second.claims())).toBeGreaterThan(MOST - 2),
    soon,
  );
  await delay(READY_MS + 100);
  expect(await second.claims()).toBeGreaterThan(0);
  // The room offered to a part can be used later, after other parts of the workspace have used more.
  expect(room.free()).toBeGreaterThanOrEqual(ROOM / 4);
  const bodies: string[] = [];
  for (let i = 0; i < keys.length; i += 50) bodies.push(...(await calm.send(...keys.slice(i, i + 50))));
  await vi.waitFor(() => expect(sink.bodies().toSorted()).toEqual(bodies.toSorted()), soon);
});

test('many parts of a workspace that find waiting events at the same time do not exceed its share', async () => {
  const sink = await startSink();
  const first = await startSlow(sink);
  const parts = [first];
  while (parts.length < 16) parts.push(await startSlow(sink, first.part.tenant));
  for (const part of parts) await part.flood(8);
  const room = createRoom(ROOM);
  const { attempt, answer } = createHanging();
  let most = 0;
  const alter = ({ exchange }: PartWorkerDeps): Partial<PartWorkerDeps> => ({
    room,
    attempt,
    async exchange(...call) {
      const answered = await exchange(...call);
      // Some responses arrive after the next exchange of another part has started.
      await delay(Math.random() * 20);
      most = Math.max(most, ROOM - room.free());
      return answered;
    },
  });
  await Promise.all(parts.map(part => part.startWorker('d1', alter)));
  onTestFinished(answer);
  await vi.waitFor(() => expect(ROOM - room.free()).toBeGreaterThan(MOST - 100), soon);
  await delay(READY_MS);
  const claims = await Promise.all(parts.map(part => part.claims()));
  expect(claims.reduce((sum, each) => sum + each, 0)).toBe(ROOM - room.free());
  expect(most).toBeLessThanOrEqual(ROOM / 2);
  expect(room.free()).toBeGreaterThanOrEqual(ROOM / 2);
});

test('large bodies of slow endpoints only use a part of the memory, and small bodies are still sent', async () => {
  const sink = await startSink();
  const first = await startSlow(sink);
  const parts = [first, await startSlow(sink, first.part.tenant)];
  await first.subscribe('a', sink, ['k']);
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
  const bodyRoom = createRoom(BODY_ROOM);
  let [inMemory, most] = [0, 0];
  const alter = ({ attempt }: PartWorkerDeps): Partial<PartWorkerDeps> => ({
    bodyRoom,
    async attempt(request) {
      if (request.body.length < LARGE) return attempt(request);
      inMemory += request.body.length;
      most = Math.max(most, inMemory);
      await answered;
      inMemory -= request.body.length;
      return { ...delivered, responseBody: Buffer.alloc(0), truncated: false };
    },
  });
  const events = MOST_BYTES / LARGE;
  for (const part of parts) {
    await part.startWorker('d1', alter);
    for (let i = 0; i < events; i++) {
      await part.ingest({ groupKey: 's', meta: '{"s":"/orders"}', body: Buffer.alloc(LARGE) });
    }
  }
  await vi.waitFor(() => expect(inMemory).toBeGreaterThan(MOST_BYTES * 0.8), soon);
  const [body] = await first.send('k');
  await vi.waitFor(() => expect(sink.bodies()).toEqual([body]), soon);
  answer();
  for (const part of parts) {
    await vi.waitFor(async () => expect((await part.counts('slow'))[3]).toBe(events), soon);
  }
  expect(most).toBeLessThanOrEqual(MOST_BYTES);
  expect(bodyRoom.free()).toBe(BODY_ROOM);
});

test('an event that cannot be read only stops its own lane, and is not claimed again continuously', async () => {
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
  // No events are lost. The event and the next event are waiting in the lane.
  expect((await world.counts('a')).slice(1)).toEqual([5, expect.any(Number), 3, 0, 0]);
});
