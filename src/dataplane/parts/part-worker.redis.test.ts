import { setTimeout as delay } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';
import { describe, expect, test, vi } from 'vitest';
import { redisClusterUrl, redisUrl } from '../../../test/support/redis/shared.ts';
import { signingSecret } from '../../core/delivery/signing-secret.ts';
import { parseEventId } from '../../part/log/event-id.ts';
import { createPartInboxRecovery } from '../../part/owner/recovery.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { createPartWorld, rootKey } from './testing/part-world.ts';
import { startSink } from './testing/sink.ts';

const soon = { timeout: 30_000, interval: 10 };

onEachRedis(redis => {
  const start = async (keys = ['k', 'l', 'm'], row = {}) => {
    const world = await createPartWorld(redis(), redis().cluster ? redisClusterUrl() : redisUrl());
    const sink = await startSink();
    await world.subscribe('a', sink, keys, row);
    return { world, sink };
  };

  describe('deliveries', () => {
    test('are signed, in order within a lane, and made once', async () => {
      const { world, sink } = await start();
      await world.startWorker('d1');
      const bodies: string[] = [];
      for (let i = 0; i < 20; i++) bodies.push(...(await world.send('k', 'l', 'm')));
      await vi.waitFor(() => expect(sink.arrivals).toHaveLength(60), soon);
      await vi.waitFor(async () => expect(await world.isEmpty()).toBe(true), soon);
      for (const key of ['k', 'l', 'm']) expect(sink.of(key)).toEqual(bodies.filter(body => body.startsWith(key)));
      expect(await world.counts('a')).toEqual([0, 60, 0, 60, 0, 0]);
      const { body, headers, id } = sink.arrivals[0] as (typeof sink.arrivals)[0];
      const secret = signingSecret({ rootKey, subscriptionId: 'sub_a', salt: 'a-salt' }, 1);
      // The body is signed and not JSON.
      expect(() => new Webhook(secret).verify(body, headers as Record<string, string>)).toThrow(SyntaxError);
      expect(parseEventId(id, world.part)).toMatchObject({ part: 0 });
    });

    test('are claimed by a worker that starts later', async () => {
      const { world, sink } = await start();
      const bodies = await world.send('k', 'k', 'l');
      await world.startWorker('d1');
      await vi.waitFor(() => expect(sink.bodies().toSorted()).toEqual(bodies.toSorted()), soon);
    });

    test('include test events, which are not stored in a log', async () => {
      const { world, sink } = await start([]);
      await world.startWorker('d1');
      const { sendTest } = createPartInboxRecovery(redis(), async () => ({ part: world.part, slot: world.slot('a') }));
      const answer = await sendTest({ integration: 'int_x', sub: 'sub_a', inc: 'inc1' });
      expect(answer).toMatchObject({ answer: 'OK' });
      await vi.waitFor(() => expect(sink.arrivals).toHaveLength(1), soon);
      const [arrival] = sink.arrivals;
      expect(arrival?.headers['ce-type']).toBe('sluice.test');
      expect(JSON.parse(String(arrival?.body)).data.subscription).toBe('sub_a');
      await vi.waitFor(async () => expect(await world.isEmpty()).toBe(true), soon);
    });

    test('include large bodies', async () => {
      const { world, sink } = await start();
      await world.subscribe('b', sink, ['k']);
      await world.startWorker('d1');
      const body = Buffer.alloc(300_000, 'x');
      await world.ingest({ groupKey: 'k', meta: '{"s":"/orders"}', body });
      await vi.waitFor(() => expect(sink.arrivals).toHaveLength(2), soon);
      for (const arrival of sink.arrivals) expect(arrival.body.equals(body)).toBe(true);
      await vi.waitFor(async () => expect(await world.isEmpty()).toBe(true), soon);
    });

    test('are limited by the cap', async () => {
      const keys = Array.from({ length: 30 }, (_, i) => `g${i}`);
      const { world, sink } = await start(keys, { cap: 3 });
      sink.control.script = (_arrival, response) => void setTimeout(() => response.end(), 20);
      await world.startWorker('d1');
      await world.send(...keys);
      await vi.waitFor(() => expect(sink.arrivals).toHaveLength(30), soon);
      expect(sink.control.most).toBe(3);
    });
  });

  describe('control', () => {
    test('gives back claims that were not started when a pause begins, and sends them after it', async () => {
      const keys = Array.from({ length: 6 }, (_, i) => `g${i}`);
      const { world, sink } = await start(keys, { cap: 3 });
      const answers: (() => void)[] = [];
      sink.control.script = (_arrival, response) => void answers.push(() => response.end());
      await world.startWorker('d1');
      await world.send(...keys);
      await vi.waitFor(() => expect(answers).toHaveLength(3), soon);
      await world.change(world.rowOf('a', { cap: 3, route: 'paused', send: 'held' }));
      await world.send('g0');
      for (const answer of answers.splice(0)) answer();
      await vi.waitFor(async () => expect((await world.counts('a'))[0]).toBe(0), soon);
      expect(sink.arrivals).toHaveLength(3);
      sink.control.script = (_arrival, response) => response.end();
      await world.change(world.rowOf('a', { cap: 3 }));
      await vi.waitFor(() => expect(new Set(sink.bodies()).size).toBe(7), soon);
      expect(sink.arrivals).toHaveLength(7);
    });

    test('keeps the following events if a key is deactivated during an attempt', async () => {
      const { world, sink } = await start();
      const answers: (() => void)[] = [];
      sink.control.script = (_arrival, response) => void answers.push(() => response.end());
      await world.startWorker('d1');
      await world.send('k', 'k');
      await vi.waitFor(() => expect(answers).toHaveLength(1), soon);
      await world.change({ kind: 'off', slot: world.slot('a'), groupKey: 'k' });
      sink.control.script = (_arrival, response) => response.end();
      answers[0]?.();
      const [other] = await world.send('l');
      await vi.waitFor(() => expect(sink.bodies()).toContain(other), soon);
      expect(sink.of('k')).toHaveLength(1);
    });

    test('continues when the account of a held part has tokens again', async () => {
      const { world, sink } = await start();
      await world.startWorker('d1');
      const bodies = await world.send('k');
      await vi.waitFor(() => expect(sink.arrivals).toHaveLength(1), soon);
      await world.change({ kind: 'meta', field: 'granted', value: '1' });
      bodies.push(...(await world.send('k', 'k')));
      await delay(300);
      expect(sink.arrivals).toHaveLength(1);
      await world.change({ kind: 'meta', field: 'granted', value: '100' });
      await vi.waitFor(() => expect(sink.bodies()).toEqual(bodies), soon);
      bodies.push(...(await world.send('k')));
      await vi.waitFor(() => expect(sink.bodies()).toEqual(bodies), soon);
    });

    test('uses a new endpoint for the next event', async () => {
      const { world, sink } = await start();
      const other = await startSink();
      await world.startWorker('d1');
      await world.send('k');
      await vi.waitFor(() => expect(sink.arrivals).toHaveLength(1), soon);
      await world.change(world.endpointOf('a', other));
      await world.send('k');
      await vi.waitFor(() => expect(other.arrivals).toHaveLength(1), soon);
    });

    test('does not use an endpoint of another slot', async () => {
      const { world, sink } = await start();
      const wrong = world.endpointOf('b', sink);
      await world.change({ ...wrong, slot: world.slot('a') });
      await world.startWorker('d1');
      await world.send('k');
      await delay(300);
      expect(sink.arrivals).toEqual([]);
      await world.change(world.endpointOf('a', sink));
      await vi.waitFor(() => expect(sink.arrivals).toHaveLength(1), soon);
    });
  });

  describe('failures', () => {
    test('are retried when due (including Retry-After) before later events', async () => {
      const { world, sink } = await start();
      const startsMs: number[] = [];
      sink.control.script = (_arrival, response) => {
        startsMs.push(performance.now());
        if (startsMs.length > 1) return void response.end();
        response.writeHead(429, { 'retry-after': '1' }).end();
      };
      await world.startWorker('d1');
      const [first = '', second = ''] = await world.send('k', 'k');
      await vi.waitFor(() => expect(sink.bodies()).toEqual([first, first, second]), soon);
      const [failedMs = 0, retriedMs = 0] = startsMs;
      expect(retriedMs - failedMs).toBeGreaterThan(900);
      await vi.waitFor(async () => expect(await world.isEmpty()).toBe(true), soon);
    });

    test('are retried when due even if nothing else looks at the part', async () => {
      const { world, sink } = await start();
      sink.control.script = (_arrival, response) => {
        response.writeHead(sink.arrivals.length > 1 ? 200 : 500).end();
      };
      await world.startWorker('d1', () => ({ look: async () => ({ dispatchers: [], dueMs: undefined }) }));
      const [body = ''] = await world.send('k');
      await vi.waitFor(() => expect(sink.bodies()).toEqual([body, body]), soon);
    });

    test('end as dead letters after the schedule', async () => {
      const { world, sink } = await start();
      sink.control.script = (_arrival, response) => void response.writeHead(500).end('broken');
      await world.startWorker('d1');
      await world.send('k');
      await vi.waitFor(async () => expect(await world.counts('a')).toEqual([0, 1, 0, 0, 1, 0]), soon);
      expect(sink.arrivals).toHaveLength(4);
    });

    test('are reported if the state of the deliveries changes', async () => {
      const { world, sink } = await start();
      sink.control.script = (_arrival, response) => {
        response.writeHead(sink.arrivals.length === 1 ? 500 : 204).end();
      };
      await world.startWorker('d1');
      await world.send('k');
      const told = [`${world.slot('a')} HttpError 0`, `${world.slot('a')} Succeeded 0`];
      await vi.waitFor(() => expect([...new Set(world.news)]).toEqual(told), soon);
    });

    test('include 410, which disables the endpoint: no more events are sent, and none is lost', async () => {
      const { world, sink } = await start();
      sink.control.script = (_arrival, response) => void response.writeHead(410).end();
      await world.startWorker('d1');
      const [body = ''] = await world.send('k');
      await vi.waitFor(() => expect(world.disabled).toEqual([world.slot('a')]), soon);
      const [other = ''] = await world.send('l');
      await delay(300);
      expect(sink.bodies()).toEqual([body]);
      sink.control.script = (_arrival, response) => response.end();
      await world.change(world.rowOf('a', { enabledMs: Date.now() + 1_000 }));
      await vi.waitFor(() => expect(sink.bodies().slice(1).toSorted()).toEqual([body, other].toSorted()), soon);
    });
  });

  test('do not disable an endpoint that has replaced the one which responded with 410', async () => {
    const { world, sink } = await start();
    const answers: (() => void)[] = [];
    sink.control.script = (_arrival, response) => void answers.push(() => response.writeHead(410).end());
    await world.startWorker('d1');
    const [first] = await world.send('k');
    await vi.waitFor(() => expect(answers).toHaveLength(1), soon);
    const other = await startSink();
    await world.change(world.endpointOf('a', other));
    answers[0]?.();
    await vi.waitFor(() => expect(other.bodies()).toEqual([first]), soon);
    const [second] = await world.send('k');
    await vi.waitFor(() => expect(other.bodies()).toEqual([first, second]), soon);
    expect(world.disabled).toEqual([]);
    expect(sink.arrivals).toHaveLength(1);
  });

  test('do not disable an endpoint that has replaced the one which responded to a test event with 410', async () => {
    const { world, sink } = await start();
    const answers: (() => void)[] = [];
    sink.control.script = (_arrival, response) => void answers.push(() => response.writeHead(410).end());
    await world.startWorker('d1');
    const { sendTest } = createPartInboxRecovery(redis(), async () => ({ part: world.part, slot: world.slot('a') }));
    await sendTest({ integration: 'int_x', sub: 'sub_a', inc: 'inc1' });
    await vi.waitFor(() => expect(answers).toHaveLength(1), soon);
    const other = await startSink();
    await world.change(world.endpointOf('a', other));
    answers[0]?.();
    await vi.waitFor(async () => expect(await world.isEmpty()).toBe(true), soon);
    const [event] = await world.send('k');
    await vi.waitFor(() => expect(other.bodies()).toEqual([event]), soon);
    expect(world.disabled).toEqual([]);
  });

  test('do not include claims from before the machine was suspended, which are not sent', async () => {
    const { world, sink } = await start(['g0', 'g1'], { cap: 1 });
    const answers: (() => void)[] = [];
    sink.control.script = (_arrival, response) => void answers.push(() => response.end());
    let [stoodMs, lostMs] = [undefined as number | undefined, 0];
    const { promise: resumed, resolve: resume } = Promise.withResolvers<void>();
    await world.startWorker('d1', ({ exchange }) => ({
      monotonicMs: () => stoodMs ?? performance.now() - lostMs,
      async exchange(...args) {
        if (stoodMs !== undefined) await resumed;
        return exchange(...args);
      },
    }));
    const [first = '', second = ''] = await world.send('g0', 'g1');
    await vi.waitFor(() => expect(answers).toHaveLength(1), soon);
    stoodMs = performance.now();
    sink.control.script = (_arrival, response) => response.end();
    await world.startWorker('d2');
    await vi.waitFor(() => expect(sink.bodies().toSorted()).toEqual([first, first, second]), soon);
    [lostMs, stoodMs] = [performance.now() - stoodMs, undefined];
    answers[0]?.();
    resume();
    await vi.waitFor(async () => expect(await world.isEmpty()).toBe(true), soon);
    await delay(300);
    expect(sink.arrivals).toHaveLength(3);
    // It continues to work.
    const [next] = await world.send('g0');
    await vi.waitFor(() => expect(sink.bodies()).toContain(next), soon);
  });

  describe('stopping', () => {
    test('finishes work in progress and returns the rest to another dispatcher', async () => {
      const keys = Array.from({ length: 6 }, (_, i) => `g${i}`);
      const { world, sink } = await start(keys, { cap: 3 });
      const answers: (() => void)[] = [];
      sink.control.script = (_arrival, response) => void answers.push(() => response.end());
      const worker = await world.startWorker('d1');
      await world.send(...keys);
      await vi.waitFor(() => expect(answers).toHaveLength(3), soon);
      const stopped = worker.stop();
      await vi.waitFor(async () => expect((await world.counts('a'))[0]).toBe(3), soon);
      sink.control.script = (_arrival, response) => response.end();
      await world.startWorker('d2');
      for (const answer of answers) answer();
      await stopped;
      await vi.waitFor(() => expect(sink.arrivals).toHaveLength(6), soon);
      await vi.waitFor(async () => expect(await world.isEmpty()).toBe(true), soon);
      expect(new Set(sink.bodies()).size).toBe(6);
    });
  });
});
