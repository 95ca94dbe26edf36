import { describe, expect, test } from 'vitest';
import { refMs } from '../core/ids/refs.ts';
import type { IngressQueue } from './ingress-store.ts';
import { BUCKET_MS, CLUSTER_KEYS, queueKeys } from './keys.ts';
import { OWNER_LEASE_MS, type QueuePage } from './queue-store.ts';
import { onEachRedis } from './testing/each-redis.ts';
import { createTenant, event, QUEUE, START_MS } from './testing/tenant.ts';

const HOUR_MS = 3_600_000;

onEachRedis(redis => {
  async function start(queue = {}) {
    const t = createTenant(redis());
    await t.apply(t.routes({}, queue));
    const config = (await t.ingress.readQueue(t.tenant, QUEUE)) as IngressQueue;
    const ingestAs = async (as: IngressQueue, ...events: ReturnType<typeof event>[]) =>
      (await t.ingress.ingest(t.tenant, QUEUE, as, events)).outcomes;
    const ingest = (...events: ReturnType<typeof event>[]) => ingestAs(config, ...events);
    const lengthOf = async (key: 'events' | 'bodies') =>
      redis().call('xlen', queueKeys(t.tenant, QUEUE, config.gen)[key]);
    return { t, config, ingest, ingestAs, lengthOf };
  }

  test('stores each event once, and says where', async () => {
    const { t, ingest, lengthOf } = await start();
    const [first, second] = await ingest(event('a', 'k'), event('b', 'k'));
    expect(first).toEqual({ answer: 'OK', ref: expect.any(String) });
    expect(refMs((first as { ref: string }).ref)).toBe(START_MS);
    expect((second as { ref: string }).ref > (first as { ref: string }).ref).toBe(true);
    t.clock.ms += 5;
    expect(await ingest(event('a', 'k'))).toEqual([{ answer: 'DUP', ref: (first as { ref: string }).ref }]);
    expect(await lengthOf('events')).toBe(2);
    expect(await lengthOf('bodies')).toBe(2);
  });

  test('the same id twice in one batch is one event', async () => {
    const { ingest, lengthOf } = await start();
    const [first, again, other] = await ingest(event('a', 'k', '1'), event('a', 'k', '2'), event('b', 'k'));
    expect(again).toEqual({ answer: 'DUP', ref: (first as { ref: string }).ref });
    expect(other).toMatchObject({ answer: 'OK' });
    expect(await lengthOf('events')).toBe(2);
  });

  test('what is stored comes back byte by byte', async () => {
    const { t, config, ingest } = await start();
    const body = Buffer.from(Array.from({ length: 512 }, (_, i) => i % 256));
    const given = { ...event('ä-1', 'schlüssel', body), type: 'order.made', contentType: 'a/b', forward: { x: 'y' } };
    const [outcome] = await ingest(given);
    const [ms] = [refMs((outcome as { ref: string }).ref)];
    const [stored, missing] = await t.inboxes.readEvents(t.tenant, QUEUE, config.gen, [`${ms}-0`, '5-0']);
    expect(stored?.body.equals(body)).toBe(true);
    expect(stored?.groupKey).toBe('schlüssel');
    expect(JSON.parse(stored?.meta ?? '')).toEqual({
      i: 'ä-1',
      t: 'order.made',
      c: 'a/b',
      f: { x: 'y' },
      s: config.source,
    });
    expect(missing).toBeUndefined();
  });

  describe('24 hours of dedupe, judged by the ref', () => {
    test.each([0, 1, BUCKET_MS - 1, BUCKET_MS, 23 * HOUR_MS, 24 * HOUR_MS - 1])(
      'a duplicate after %d ms',
      async wait => {
        const { t, ingest } = await start();
        // The last ms of a bucket: the farthest that an id can lie behind.
        t.clock.ms = Math.floor(START_MS / BUCKET_MS) * BUCKET_MS + (wait % 2 === 0 ? 0 : BUCKET_MS - 1);
        const [first] = await ingest(event('a', 'k'));
        t.clock.ms += wait;
        expect(await ingest(event('a', 'k'))).toEqual([{ answer: 'DUP', ref: (first as { ref: string }).ref }]);
      },
    );

    test.each([24 * HOUR_MS, 24 * HOUR_MS + 1, 100 * HOUR_MS])('another event after %d ms', async wait => {
      const { t, ingest, lengthOf } = await start();
      await ingest(event('a', 'k'));
      t.clock.ms += wait;
      expect(await ingest(event('a', 'k'))).toMatchObject([{ answer: 'OK' }]);
      expect(await ingest(event('a', 'k'))).toMatchObject([{ answer: 'DUP' }]);
      expect(await lengthOf('events')).toBe(2);
    });
  });

  test('a clock that is set back neither stores twice nor breaks the order', async () => {
    const { t, ingest, lengthOf } = await start();
    // The first ms of a bucket: an hour earlier, another bucket is the one of now.
    t.clock.ms = Math.ceil(START_MS / BUCKET_MS) * BUCKET_MS;
    const [first] = await ingest(event('a', 'k'));
    t.clock.ms -= HOUR_MS;
    expect(await ingest(event('a', 'k'))).toMatchObject([{ answer: 'DUP' }]);
    const [second] = await ingest(event('b', 'k'));
    expect((second as { ref: string }).ref > (first as { ref: string }).ref).toBe(true);
    expect(await lengthOf('events')).toBe(2);
  });

  test('STALE, CLOSED and GONE store nothing', async () => {
    const { t, ingest, ingestAs, lengthOf } = await start();
    await t.apply(t.routes({}, { eventTypes: ['new.rule'] }));
    expect(await ingest(event('a', 'k'), event('b', 'k'))).toEqual([{ answer: 'STALE' }, { answer: 'STALE' }]);
    await t.apply(t.routes({}, { state: 'closing' }));
    const closing = (await t.ingress.readQueue(t.tenant, QUEUE)) as IngressQueue;
    expect(closing.state).toBe('closing');
    expect(await ingestAs(closing, event('a', 'k'))).toEqual([{ answer: 'CLOSED' }]);
    await redis().call('hdel', queueKeys(t.tenant, QUEUE).meta, 'ready');
    expect(await ingest(event('a', 'k'))).toEqual([{ answer: 'GONE' }]);
    expect(await lengthOf('events')).toBe(0);
  });

  test('the byte quota refuses what does not fit, and takes what does; trimming makes room', async () => {
    // Of each event it takes the body and the group key, 400 for what surrounds them, and the metadata.
    const around = 1 + 400 + JSON.stringify({ i: 'a', s: '/events/x/orders' }).length;
    const { t, ingest } = await start({ maxBytes: 2 * around + 10, retentionMs: HOUR_MS });
    expect(await ingest(event('a', 'k', '123456'), event('b', 'k', '123456'), event('c', 'k', '1234'))).toMatchObject([
      { answer: 'OK' },
      { answer: 'FULL' },
      { answer: 'OK' },
    ]);
    // Refused is not stored: the same id is taken as soon as there is room.
    const queue = await t.own();
    expect(await t.queues.trim(queue, t.nowMs(), `${START_MS + 1}-0`, [])).toMatchObject({ more: false });
    expect(await ingest(event('b', 'k', '123456'))).toMatchObject([{ answer: 'OK' }]);
  });

  test('a queue that was made again knows nothing of the old one', async () => {
    const { t, ingest, ingestAs } = await start();
    await ingest(event('a', 'k'));
    await t.apply(t.routes({}, { gen: 'gen2' }));
    const newer = (await t.ingress.readQueue(t.tenant, QUEUE)) as IngressQueue;
    expect(newer.gen).toBe('gen2');
    expect(await ingestAs(newer, event('a', 'k'))).toMatchObject([{ answer: 'OK' }]);
  });

  test('says whether a router is at work, until the step in which it finds the queue empty', async () => {
    const { t, config } = await start();
    const awake = async (id: string) => (await t.ingress.ingest(t.tenant, QUEUE, config, [event(id, 'k')])).awake;
    expect(await awake('a')).toBe(false);
    const queue = await t.own();
    expect(await awake('b')).toBe(true);
    const page = (await t.queues.next(queue, t.clock.ms, 10)) as QueuePage;
    expect(await awake('c')).toBe(true);
    const idOf = ({ entries }: QueuePage) => entries.at(-1)?.id as string;
    const result = { from: page.cursor, to: idOf(page), behind: [], wake: [], counters: new Map(), why: [] };
    const rest = (await t.queues.next(queue, t.clock.ms, 10, result)) as QueuePage;
    expect(rest.entries).toHaveLength(1);
    // It died, or hangs: after its lease nobody is at work.
    t.clock.ms += OWNER_LEASE_MS;
    expect(await awake('c')).toBe(false);
    const last = { ...result, from: idOf(page), to: idOf(rest) };
    expect(((await t.queues.next(queue, t.clock.ms, 10, last)) as QueuePage).entries).toEqual([]);
    expect(await awake('c')).toBe(false);
  });

  test('what does not exist is told from what is not known', async () => {
    const { t } = await start();
    expect(await t.ingress.readQueue(t.tenant, 'other')).toBeNull();
    await redis().call('sadd', CLUSTER_KEYS.tenants, t.tenant);
    await redis().call('hdel', `{t:${t.tenant}}:meta`, 'ready');
    expect(await t.ingress.readQueue(t.tenant, 'other')).toBe('unavailable');
    expect(await t.ingress.checkKey(t.tenant, 'aa')).toBe('unavailable');
  });
});
