import { describe, expect, onTestFinished, test } from 'vitest';
import { startRedis } from '../../../test/support/redis/server.ts';
import { START_MS } from '../../redis/testing/tenant.ts';
import type { AttemptResult } from './endpoint-client.ts';
import { answered, connect, start } from './testing/worker-harness.ts';

test('delivers everything, each key in order, until nothing is due', async () => {
  const { publish, worker, sent, counters, room } = await start(await connect());
  await publish('a', 'b', 'a', 'a', 'c', 'b');
  expect(await worker().run()).toBeNull();
  expect(sent.toSorted()).toEqual(['a0', 'a2', 'a3', 'b1', 'b5', 'c4']);
  for (const key of ['a', 'b', 'c']) {
    const mine = sent.filter(body => body.startsWith(key)).map(body => Number(body.slice(1)));
    expect(mine).toEqual(mine.toSorted((one, other) => one - other));
  }
  expect(await counters()).toEqual({ 'n:routed': '6', 'n:delivered': '6' });
  expect(room.free).toBe(1_000);
});

test('a failure holds its key only; the worker answers when it is due, and dead after the last try', async () => {
  const { t, publish, worker, sent, control, counters } = await start(await connect());
  control.attempt = async body => answered(body === 'a0' ? 500 : 204);
  await publish('a', 'a', 'b');
  expect(await worker().run()).toBe(START_MS + 5_000);
  expect(sent.toSorted()).toEqual(['a0', 'b2']);
  t.clock.ms += 5_000;
  expect(await worker().run()).toBe(START_MS + 10_000);
  t.clock.ms += 5_000;
  expect(await worker().run()).toBeNull();
  expect(sent.filter(body => body === 'a0')).toHaveLength(3);
  expect(sent.at(-1)).toBe('a1');
  expect(await counters()).toEqual({ 'n:routed': '3', 'n:delivered': '2', 'n:dead': '1' });
});

describe('the cap', () => {
  test('is never passed, and all is delivered without asking in between', async () => {
    const keys = Array.from({ length: 40 }, (_, i) => `k${i}:`);
    const { publish, worker, control, calls, sent } = await start(await connect(), { cap: 4 }, keys);
    control.attempt = () => new Promise(resolve => setTimeout(() => resolve(answered(204)), 2));
    await publish(...keys);
    expect(await worker().run()).toBeNull();
    expect(sent).toHaveLength(40);
    expect(control.most).toBe(4);
    expect(calls.claim).toBeLessThan(45);
  });

  test('held by another dispatcher is asked for four times a second, not more', async () => {
    const { t, inbox, publish, worker, calls, control } = await start(await connect(), { cap: 1 });
    await publish('a', 'b');
    const other = await t.inboxes.claim(inbox, t.nowMs(), 1, 'other', 20_000);
    expect(other).toMatchObject({ claims: { length: 1 } });
    expect(await worker().run()).toBe(START_MS + 250);
    expect(calls.claim).toBe(1);
    expect(control.most).toBe(0);
  });
});

test('paused: one question, and no hint', async () => {
  const { t, publish, worker, calls } = await start(await connect());
  await publish('a');
  await t.apply(t.routes({ x: { sub: { send: 'held' } } }));
  expect(await worker().run()).toBeNull();
  expect(calls).toEqual({ claim: 1, complete: 0 });
});

test('what becomes due during a run is delivered in it, when it is poked', async () => {
  const { publish, worker, control, sent } = await start(await connect());
  const held = Promise.withResolvers<AttemptResult>();
  const second = Promise.withResolvers<void>();
  control.attempt = async body => {
    if (body === 'a0') return held.promise;
    second.resolve();
    return answered(204);
  };
  await publish('a');
  const running = worker();
  const done = running.run();
  await expect.poll(() => sent).toEqual(['a0']);
  await publish('b');
  running.poke();
  await second.promise;
  held.resolve(answered(204));
  expect(await done).toBeNull();
  expect(sent).toEqual(['a0', 'b1']);
});

describe('the room of the process', () => {
  test('is shared: who finds none waits, and goes on when some is free', async () => {
    const first = await start(await connect());
    const second = await start(await connect());
    second.deps.room = first.room;
    first.room.free = 1;
    const held = Promise.withResolvers<AttemptResult>();
    first.control.attempt = () => held.promise;
    await first.publish('a');
    await second.publish('a', 'b');
    const one = first.worker().run();
    await expect.poll(() => first.sent).toEqual(['a0']);
    const two = second.worker().run();
    // The first one, too: its subscription might have more.
    await expect.poll(() => first.room.waiting.size).toBe(2);
    expect(second.sent).toEqual([]);
    held.resolve(answered(204));
    expect(await Promise.all([one, two])).toEqual([null, null]);
    expect(second.sent).toHaveLength(2);
    expect(first.room).toEqual({ free: 1, waiting: new Set() });
  });

  test('stopping ends those that wait for it, and what they did not claim stays due', async () => {
    const { publish, worker, room, aborter, t } = await start(await connect());
    room.free = 0;
    await publish('a');
    const runs = [worker().run(), worker().run(), worker().run()];
    await expect.poll(() => room.waiting.size).toBe(3);
    aborter.abort();
    expect(await Promise.all(runs)).toEqual([t.nowMs(), t.nowMs(), t.nowMs()]);
    expect(room.waiting.size).toBe(0);
  });
});

test('claims of one that died are taken over after their lease, and counted as lapses until they are poison', async () => {
  const { t, inbox, publish, worker, sent, counters } = await start(await connect());
  await publish('a');
  for (let died = 0; died < 6; died++) {
    expect(await t.inboxes.claim(inbox, t.nowMs(), 1, `dead${died}`, 20_000)).toMatchObject({
      claims: [{ lapses: died }],
    });
    t.clock.ms += 20_000;
  }
  expect(await worker().run()).toBeNull();
  expect(sent).toEqual([]);
  expect(await counters()).toEqual({ 'n:routed': '1', 'n:dead': '1' });
});

test('what was asked for and not answered is asked for again', async () => {
  const { deps, publish, worker, sent, room } = await start(await connect());
  await publish('a');
  const { exchange } = deps.inboxes;
  let failures = 2;
  deps.inboxes.exchange = async (...args) => {
    if (failures-- > 0) throw new Error('no answer');
    return exchange(...args);
  };
  expect(await worker().run()).toBeNull();
  expect(sent).toEqual(['a0']);
  expect(room.free).toBe(1_000);
});

test('an event that retention removed ends as expired', async () => {
  const { t, publish, worker, sent, counters } = await start(await connect());
  await publish('a');
  await t.queues.trim(await t.own(), t.nowMs(), `${START_MS + 1}-0`, []);
  expect(await worker().run()).toBeNull();
  expect(sent).toEqual([]);
  expect(await counters()).toEqual({ 'n:routed': '1', 'n:expired': '1' });
});

test('events that cannot be read are released, without spinning', async () => {
  const { deps, publish, worker, sent, calls } = await start(await connect());
  await publish('a');
  const read = deps.readEvents;
  let failures = 2;
  deps.readEvents = async (...args) => {
    if (failures-- > 0) throw new Error('the node of the queue is away');
    return read(...args);
  };
  expect(await worker().run()).toBeNull();
  expect(sent).toEqual(['a0']);
  expect(calls.claim).toBeLessThan(8);
});

test('what ended while Redis was dead is completed when it is back, and delivered once', async () => {
  const server = await startRedis({ appendonly: true });
  onTestFinished(server.stop);
  const { publish, worker, control, sent, counters, room } = await start(await connect(server.url));
  const held = Promise.withResolvers<AttemptResult>();
  control.attempt = async body => (body === 'a0' ? held.promise : answered(204));
  await publish('a', 'a');
  const done = worker().run();
  await expect.poll(() => sent).toEqual(['a0']);
  await server.kill();
  held.resolve(answered(204));
  await server.restart();
  expect(await done).toBeNull();
  expect(sent).toEqual(['a0', 'a1']);
  expect(await counters()).toEqual({ 'n:routed': '2', 'n:delivered': '2' });
  expect(room.free).toBe(1_000);
});

test('a longer timeout holds at once: an attempt never outlasts the lease of its claim', async () => {
  const { t, inbox, configure, publish, worker, sent, control, counters } = await start(await connect());
  // From here on the worker knows a timeout of 15 s.
  expect(await worker().run()).toBeNull();
  await configure(30_000);
  const held = Promise.withResolvers<AttemptResult>();
  control.attempt = () => held.promise;
  await publish('a');
  const done = worker().run();
  await expect.poll(() => sent).toEqual(['a0']);
  t.clock.ms += 29_000;
  expect(await t.inboxes.claim(inbox, t.nowMs(), 1, 'other', 1)).toMatchObject({ answer: 'OK', claims: [] });
  held.resolve(answered(204));
  expect(await done).toBeNull();
  expect(sent).toEqual(['a0']);
  expect(await counters()).toEqual({ 'n:routed': '1', 'n:delivered': '1' });
});
