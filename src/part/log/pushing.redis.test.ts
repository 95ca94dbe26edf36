import { describe, expect, test } from 'vitest';
import { createTestPart, event, START_MS } from '../../../test/support/part/part.ts';
import { listenTo } from '../../../test/support/part/pushes.ts';
import { redisClusterUrl, redisUrl } from '../../../test/support/redis/shared.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { createReadBodies } from './read-bodies.ts';

onEachRedis(redis => {
  const url = () => (redis().cluster ? redisClusterUrl() : redisUrl());
  const refsOf = (answer: Awaited<ReturnType<ReturnType<typeof createTestPart>['ingest']>>) =>
    answer.answer === 'OK' ? answer.events.map(each => ('ref' in each ? each.ref : each.answer)) : [];

  describe('pushing', () => {
    const pushing = () => {
      const t = createTestPart(redis());
      return { t, d: t.dispatcher('d1'), listen: () => listenTo(redis(), url(), t.part) };
    };

    test('claims an idle lane for an available dispatcher, and sends event and claim in one message', async () => {
      const { t, d, listen } = pushing();
      await t.setUp({ a: {}, b: { unordered: true } }, ['k']);
      await d.exchange();
      const pushes = await listen();
      const [ref = ''] = await t.send('k');
      const [push] = await pushes.take();
      pushes.close();
      expect(push).toMatchObject({ dispatcher: 'd1', pushed: 2, waiting: false, nowMs: START_MS, behind: [] });
      const [only] = push?.events ?? [];
      expect(only).toMatchObject({ ref, groupKey: 'k', meta: '{"s":"/x"}', size: 4 });
      expect(only?.body?.toString()).toBe('body');
      const lanes = only?.claims.map(({ lane }) => lane).toSorted();
      expect(lanes).toEqual([`${t.slot('a')}k`, `${t.slot('b')}k\0${ref}`].toSorted());
      expect(Object.keys(await t.hash('claims')).toSorted()).toEqual(lanes);
      expect(await t.members('pending')).toEqual([]);
      expect((await t.hash('ready')).d1).toMatch(/^\d+ 1000 2 2 /);
    });

    test('reports every few seconds that there are events without a subscriber, or waiting events', async () => {
      const { t, d, listen } = pushing();
      await t.setUp({ a: { send: 'held' }, b: { route: 'paused' } }, ['k']);
      await d.exchange();
      const pushes = await listen();
      const received: number[] = [];
      for (const groupKey of ['nobody', 'k', '', 'nobody', 'nobody', 'k']) {
        t.clock.ms += 2_001;
        await t.send(groupKey);
        received.push((await pushes.take()).length);
      }
      pushes.close();
      expect(received).toEqual([1, 0, 1, 0, 1, 0]);
    });

    // The texts of a message are joined 16 at a time.
    test.each([1, 15, 16, 17, 40, 64])('sends all of %d events in one message, in order', async count => {
      const { t, d, listen } = pushing();
      const groupKeys = Array.from({ length: count }, (_, n) => `k${n}`);
      await t.setUp({ a: { cap: 64 } }, groupKeys);
      await d.exchange();
      const pushes = await listen();
      await t.ingest(...groupKeys.map(groupKey => event(groupKey)));
      const [push, ...others] = await pushes.take();
      pushes.close();
      expect(others).toEqual([]);
      expect(push?.events.map(({ groupKey }) => groupKey)).toEqual(groupKeys);
    });

    test('omits a body of more than 16 KiB', async () => {
      const { t, d, listen } = pushing();
      await t.setUp({ a: {} }, ['k']);
      await d.exchange();
      const pushes = await listen();
      await t.ingest(event('k', { body: Buffer.alloc(16_384, 1) }), event('k2'));
      await t.activate('a', 'k2');
      const [ref = ''] = refsOf(await t.ingest(event('k2', { body: Buffer.alloc(16_385, 2) })));
      const events = (await pushes.take()).flatMap(push => push.events);
      pushes.close();
      expect(events.map(({ size, body }) => [size, body?.length])).toEqual([
        [16_384, 16_384],
        [16_385, undefined],
      ]);
      const [body] = await createReadBodies(t.client)(t.part, [ref]);
      expect(body?.equals(Buffer.alloc(16_385, 2))).toBe(true);
    });

    test('joins a body whose end is stored in the log: in a push, in a response, and when it is read', async () => {
      const { t, d, listen } = pushing();
      await t.setUp({ a: {} }, ['k']);
      await d.exchange();
      const pushes = await listen();
      // The second event waits for the first event. The third event is too large for a message.
      const bodies = [1_024, 1_030, 20_574].map((size, i) =>
        Buffer.concat([Buffer.alloc(size - 1, i + 1), Buffer.from('e')]),
      );
      const refs = refsOf(await t.ingest(...bodies.map(body => event('k', { body }))));
      const [pushed] = (await pushes.take()).flatMap(push => push.events);
      pushes.close();
      expect(pushed?.body?.equals(bodies[0] as Buffer)).toBe(true);
      const [first] = d.take(pushed === undefined ? [] : [pushed]);
      if (first !== undefined) d.end(first);
      const [second, ...none] = (await d.exchange()).events;
      expect(none).toEqual([]);
      expect(second).toMatchObject({ ref: refs[1], size: 1_030 });
      expect(second?.body?.equals(bodies[1] as Buffer)).toBe(true);
      const read = await createReadBodies(t.client)(t.part, refs);
      expect(read.map((body, i) => body.equals(bodies[i] as Buffer))).toEqual([true, true, true]);
      const stored = await redis().call('hstrlen', t.keys.body, refs[0] as string);
      expect(stored).toBe(1_018);
    });

    test('reports once which claimed lanes have more events', async () => {
      const { t, d, listen } = pushing();
      await t.setUp({ a: {} }, ['k']);
      await d.exchange();
      const pushes = await listen();
      await t.send('k');
      await t.send('k', 'k');
      await t.send('k');
      const messages = await pushes.take();
      pushes.close();
      expect(messages.map(push => push.behind)).toEqual([[], [`${t.slot('a')}k`]]);
      expect(messages.map(push => push.events.length)).toEqual([1, 0]);
    });

    test('pushes to the dispatcher with the most room for claims, while there is room in bytes', async () => {
      const { t, d, listen } = pushing();
      await t.setUp({ a: { cap: 1_000 } }, ['k', 'l', 'm', 'n']);
      await d.exchange(0, { limit: 1 });
      await t.dispatcher('d2').exchange(0, { limit: 5, roomBytes: 100 });
      const pushes = await listen();
      const keys = ['k', 'l', 'm', 'n'];
      for (const key of keys) await t.ingest(event(key, { body: Buffer.alloc(80) }));
      const messages = await pushes.take();
      pushes.close();
      // Waiting events are reported once while other events of the subscription are in progress.
      expect(messages.map(push => [push.dispatcher, push.waiting])).toEqual([
        ['d2', false],
        ['d1', false],
        [undefined, true],
      ]);
      expect(await t.members('waiting')).toHaveLength(2);
    });

    test('does not push to a dispatcher that has not been active for its time', async () => {
      const { t, d } = pushing();
      await t.setUp({ a: {} }, ['k']);
      await d.exchange();
      t.clock.ms += 3_000;
      await t.send('k');
      expect(await t.hash('claims')).toEqual({});
      expect(await t.members('turns')).toEqual([t.slot('a')]);
    });

    test.each([
      ['twice the cap is claimed', { cap: 1 }, 2],
      ['the subscription is not sent to', { send: 'held' as const }, 0],
      ['attempts are paced', { maxPerSecond: 5 }, 0],
    ])('lets lanes wait if %s', async (_name, fields, claimed) => {
      const { t, d, listen } = pushing();
      await t.setUp({ a: fields }, ['k', 'l', 'm', 'n']);
      await d.exchange();
      const pushes = await listen();
      await t.send('k', 'l', 'm', 'n');
      const [push] = await pushes.take();
      pushes.close();
      expect(Object.keys(await t.hash('claims'))).toHaveLength(claimed);
      expect(await t.members('waiting')).toHaveLength(4 - claimed);
      expect(push?.waiting ?? false).toBe(!('send' in fields));
    });

    test('does not let events overtake waiting lanes', async () => {
      const { t, d } = pushing();
      await t.setUp({ a: {} }, ['k', 'l']);
      await t.send('k');
      await d.exchange(0);
      await t.send('l');
      expect(await t.hash('claims')).toEqual({});
      const { claims } = await d.exchange();
      expect(claims.map(({ lane }) => lane.slice(8))).toEqual(['k', 'l']);
    });

    test('does not push after nobody has received a push', async () => {
      const { t, d } = pushing();
      await t.setUp({ a: {} }, ['k', 'l']);
      await d.exchange();
      await t.send('k');
      await t.send('l');
      expect(Object.keys(await t.hash('claims'))).toEqual([`${t.slot('a')}k`]);
    });
  });
});
