import { hash } from 'node:crypto';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { keyOfSeries, parseExposition } from '../../test/support/prometheus/exposition.ts';
import type { QueueRoute } from '../core/routing/routes.ts';
import { createPartWriter } from '../part/control/part-writer.ts';
import { createPartRoutingReader } from '../part/fate/routing-reader.ts';
import { createReadDetails } from '../part/inbox/details.ts';
import { partRefOf } from '../part/inbox/ref-names.ts';
import { partKeys, slotOf } from '../part/keys.ts';
import { eventIdOf } from '../part/log/event-id.ts';
import { createTenant, QUEUE, type SubscriptionShort } from '../record/testing/tenant.ts';
import { tenantKeys } from '../redis/keys.ts';
import { onEachRedis } from '../redis/testing/each-redis.ts';
import { createLogger } from '../telemetry/log.ts';
import { createRegistry } from '../telemetry/metrics.ts';
import { createPartIngressMetrics } from './ingress/ingress-metrics.ts';
import { createIngress } from './ingress/server.ts';
import { createMemorySource } from './memory-source.ts';
import { createPartIngestion } from './part-ingestion.ts';

const KEY = 'sk_0123456789abcdef';
const HEADERS = {
  eventType: ['x-type'],
  groupKey: ['x-group'],
  eventId: ['x-id'],
  forward: [],
};

interface Answer {
  readonly id?: string;
  readonly duplicate?: boolean;
  readonly groupKey?: string | null;
  readonly code?: string;
  readonly errors?: readonly { readonly detail: string }[];
}

onEachRedis(redis => {
  /** A workspace with one stream, written like a controller, and an ingress. */
  async function start(subscriptions: readonly string[] = ['a'], stream: Partial<QueueRoute> = {}) {
    const t = createTenant(redis());
    const { tenant } = t;
    const keys = tenantKeys(tenant);
    await redis().call('hset', keys.meta, 'ready', '1');
    await redis().call('hset', keys.index, `q:${QUEUE}`, '1');
    await redis().call('hset', keys.keys, hash('sha256', KEY), '');
    const writer = createPartWriter(redis(), async () => {});
    const keysOf = new Map(subscriptions.map(name => [t.nameOf(name), [{ groupKey: 'k', sinceMs: 0 }]]));
    async function write(change: Partial<QueueRoute> = {}, sub: SubscriptionShort = {}) {
      const want = t.routes(Object.fromEntries(subscriptions.map(name => [name, { sub }])), {
        contextHeaders: HEADERS,
        ...stream,
        ...change,
      });
      await writer.write({
        fence: 1,
        have: t.routes({}, null),
        want,
        isKnown: false,
        openKeys: () => keysOf,
        nowMs: Date.now(),
      });
    }
    await write();

    const alarms: string[] = [];
    const calls: { readonly sent: number; readonly answered: number }[] = [];
    let underWay = 0;
    const registry = createRegistry();
    const store = createPartIngestion({
      redis: redis(),
      nowMs: Date.now,
      alarm: slot => void alarms.push(slot),
      onRouted: createPartIngressMetrics(registry),
    });
    const ingress = createIngress({
      store: {
        ...store,
        async ingest(...args) {
          expect(++underWay).toBe(1);
          const stored = await store.ingest(...args);
          underWay--;
          calls.push({ sent: args[3].length, answered: stored.answers.length });
          return stored;
        },
      },
      memorySource: createMemorySource(redis()),
      registry,
      log: createLogger({ level: 'silent' }),
      // Data about the stream is only read again if the store requests this.
      limits: { queueTtlMs: 3_600_000 },
    });
    const port = await ingress.listen(0, '127.0.0.1');
    onTestFinished(() => ingress.close());
    const path = `/events/${tenant}/${QUEUE}`;

    async function send(headers: Record<string, string> = {}, body = 'body', to = path, key = KEY) {
      const answer = await fetch(`http://127.0.0.1:${port}${to}`, {
        method: 'POST',
        headers: { 'x-api-key': key, ...headers },
        body,
      });
      return { status: answer.status, ...((await answer.json()) as Answer) };
    }
    /** Sends events whose bodies are their numbers, on one connection without delays. */
    async function sendPipelined(count: number, groupKey: string): Promise<Answer[]> {
      const socket = connect(port, '127.0.0.1');
      const requests = Array.from({ length: count }, (_, i) => {
        const last = i === count - 1 ? 'connection: close\r\n' : '';
        const head = `host: x\r\nx-api-key: ${KEY}\r\nx-group: ${groupKey}\r\n${last}content-length: ${String(i).length}`;
        return `POST ${path} HTTP/1.1\r\n${head}\r\n\r\n${i}`;
      });
      socket.write(requests.join(''));
      return [...(await text(socket)).matchAll(/\{.*\}/g)].map(([json]) => JSON.parse(json) as Answer);
    }

    const part = { tenant, queue: QUEUE, gen: 'gen1', number: 0 };
    const p = partKeys(part);
    const reader = createPartRoutingReader(redis(), Date.now, () => 'active');
    const log = async () => {
      const entries = (await redis().call('xrange', p.log, '-', '+')) as [string, string[]][];
      return entries.map(([, [, groupKey, , meta, , size]]) => ({ groupKey, meta, size: Number(size) }));
    };
    /** Returns the bodies in the order of the log. */
    const bodies = async () => {
      const byRef = await redis().readHash(p.body);
      return Object.entries(byRef)
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(([, body]) => body);
    };
    /**
     * Returns the number of events that were routed when they were stored, and the number of other events, by reason.
     */
    async function counts() {
      const all = parseExposition(await registry.metrics());
      const of = (series: string) => all.find(each => keyOfSeries(each) === `sluice_ingress_${series}`)?.value;
      return {
        routed: of('routed_total{}'),
        keyless: of('not_routed_total{reason="missing_group_key"}'),
        inactive: of('not_routed_total{reason="not_activated"}'),
      };
    }
    return {
      counts,
      tenant,
      path,
      part,
      p,
      write,
      alarms,
      calls,
      store,
      send,
      sendPipelined,
      find: (eventId: string) => reader.findEvent(tenant, QUEUE, { eventId }),
      slot: (name: string) => slotOf(`sub_${name}`, 'inc1'),
      log,
      bodies,
    };
  }

  describe('an event that is sent using HTTP', () => {
    test('is stored and routed in its part, and the response contains the id by which readers find it', async () => {
      const { send, log, bodies, find, part, slot } = await start();
      const headers = { 'x-group': 'k', 'x-type': 'made', 'content-type': 'application/x-thing' };
      const { status, id = '', ...answer } = await send(headers, 'body ä');
      expect({ status, ...answer }).toEqual({ status: 202, duplicate: false, groupKey: 'k' });
      const meta = { s: '/events/x/orders', t: 'made', c: 'application/x-thing' };
      expect((await log()).map(each => ({ ...each, meta: JSON.parse(each.meta as string) }))).toEqual([
        { groupKey: 'k', meta, size: 7 },
      ]);
      expect(await bodies()).toEqual(['body ä']);
      const found = await find(id);
      expect(found).toMatchObject({ meta: { id, type: 'made', groupKey: 'k' }, bytes: 7 });
      const ref = partRefOf(found?.ref as string) as string;
      expect(id).toBe(eventIdOf(part, ref));
      const details = await createReadDetails(redis())({ part, slot: slot('a') }, [{ ref }]);
      expect(details).toMatchObject([{ event: { meta: { id } }, progress: { state: 'pending' } }]);
    });

    test('is stored without a group key and not routed', async () => {
      const { send, log, find } = await start();
      const { id = '', ...answer } = await send();
      expect(answer).toEqual({ status: 202, duplicate: false, groupKey: null });
      expect(await log()).toMatchObject([{ groupKey: '' }]);
      expect(await find(id)).toMatchObject({ meta: { id, groupKey: '' } });
    });

    test('is counted once, either for its destination or with the reason', async () => {
      const { send, counts, p } = await start(['a', 'b']);
      expect(await counts()).toEqual({ routed: 0, keyless: 0, inactive: 0 });
      await send({ 'x-group': 'k', 'x-id': 'one' });
      await send({ 'x-group': 'k', 'x-id': 'one' });
      await send({ 'x-id': 'keyless' });
      await send({ 'x-id': 'keyless' });
      await send({ 'x-group': 'nobody-has-this' });
      expect(await counts()).toEqual({ routed: 2, keyless: 1, inactive: 1 });
      // It is not known yet who will receive the event.
      await redis().call('hdel', p.keys, '');
      await send({ 'x-group': 'nobody-has-this' });
      await send({ 'x-group': 'k' });
      expect(await counts()).toEqual({ routed: 2, keyless: 1, inactive: 1 });
    });

    test('is stored once with the id of its sender', async () => {
      const { send, log, find, store, tenant } = await start();
      expect(await send({ 'x-id': 'order/1', 'x-group': 'k' })).toMatchObject({ id: 'order/1', duplicate: false });
      for (let again = 0; again < 2; again++) {
        expect(await send({ 'x-id': 'order/1', 'x-group': 'k' }, 'other')).toEqual({
          status: 202,
          id: 'order/1',
          duplicate: true,
          groupKey: 'k',
        });
      }
      expect((await log()).map(({ meta }) => JSON.parse(meta as string))).toMatchObject([{ i: 'order/1' }]);
      const found = await find('order/1');
      expect(found).toMatchObject({ meta: { id: 'order/1' }, bytes: 4 });
      const config = await store.readQueue(tenant, QUEUE);
      if (config === null || config === 'unavailable') throw new Error('the stream is missing');
      const item = { type: undefined, groupKey: 'k', contentType: undefined, traceparent: undefined, forward: {} };
      const { answers } = await store.ingest(tenant, QUEUE, config, [
        { ...item, id: 'order/1', body: Buffer.from('') },
      ]);
      expect(answers).toEqual([{ answer: 'DUP', ref: found?.ref, id: 'order/1' }]);
    });

    test('is answered with the current limit of its account and the stored bytes', async () => {
      const { store, tenant, part } = await start();
      const config = await store.readQueue(tenant, QUEUE);
      if (config === null || config === 'unavailable') throw new Error('the stream is missing');
      const { meta } = partKeys(part);
      const event = { type: undefined, groupKey: 'k', contentType: undefined, traceparent: undefined, forward: {} };
      const ingest = () =>
        store.ingest(tenant, QUEUE, config, [{ ...event, id: undefined, body: Buffer.from('body') }]);
      for (const limit of ['7', '0']) {
        await redis().call('hset', meta, 'payer', `acc_${limit}`, 'eventsPerSecond', limit);
        const { queueNow } = await ingest();
        const read = await store.readQueue(tenant, QUEUE);
        expect(read).toMatchObject({ payer: `acc_${limit}` });
        expect(read).toMatchObject(queueNow as object);
        expect(queueNow).toMatchObject({ payer: `acc_${limit}`, eventsPerSecond: Number(limit) });
      }
      await redis().call('hdel', meta, 'payer', 'eventsPerSecond');
      const { queueNow } = await ingest();
      expect(queueNow).toEqual({ payer: '', eventsPerSecond: undefined, bytes: expect.any(Number) });
    });

    test('is a duplicate if its id was returned before, and refused otherwise', async () => {
      const { send, log, find, part } = await start();
      const { id = '' } = await send({ 'x-group': 'k' });
      expect(await send({ 'x-group': 'k', 'x-id': id })).toEqual({ status: 202, id, duplicate: true, groupKey: 'k' });
      await send({ 'x-group': 'k', 'x-id': 'order/1' });
      const named = partRefOf((await find('order/1'))?.ref as string) as string;
      for (const ref of [named, 'f'.repeat(15), '0'.repeat(15)]) {
        const forged = eventIdOf(part, ref);
        expect(await find(forged)).toBeUndefined();
        const answer = await send({ 'x-group': 'k', 'x-id': forged });
        expect(answer).toMatchObject({ status: 422, code: 'invalid_context' });
        expect(answer.errors).toEqual([{ detail: expect.stringContaining('ingress generates for this stream') }]);
        expect(await find(forged)).toBeUndefined();
      }
      const elsewhere = eventIdOf({ ...part, gen: 'gen2' }, named);
      expect(await send({ 'x-id': elsewhere })).toMatchObject({ status: 202, id: elsewhere, duplicate: false });
      expect(await send({ 'x-id': elsewhere })).toMatchObject({ status: 202, id: elsewhere, duplicate: true });
      expect(await find(elsewhere)).toMatchObject({ meta: { id: elsewhere } });
      expect(await log()).toHaveLength(3);
    });

    test('is refused without being stored if the quota is used up', async () => {
      const { send, log } = await start(['a'], { maxBytes: 1_000 });
      expect(await send({ 'x-group': 'k' })).toMatchObject({ status: 202 });
      expect(await send({ 'x-group': 'k' }, 'x'.repeat(1_000))).toMatchObject({ status: 429, code: 'queue_full' });
      expect(await log()).toHaveLength(1);
    });

    test('is refused without a key of its workspace', async () => {
      const { send, log } = await start();
      expect(await send({}, '', undefined, 'sk_of_somebody_else')).toMatchObject({ status: 401 });
      expect(await log()).toEqual([]);
    });
  });

  describe('many events', () => {
    test('that exceed 512 references are stored completely and in order, using several calls', async () => {
      const names = Array.from({ length: 150 }, (_, i) => `s${i}`);
      const { sendPipelined, bodies, p, calls } = await start(names, { maxBytes: 10_000_000 });
      const answers = await sendPipelined(20, 'k');
      expect(answers.map(({ duplicate }) => duplicate)).toEqual(Array.from({ length: 20 }, () => false));
      const ids = answers.map(({ id = '' }) => id);
      expect(ids.toSorted((a, b) => (a < b ? -1 : 1))).toEqual(ids);
      expect(await bodies()).toEqual(Array.from({ length: 20 }, (_, i) => String(i)));
      const [entries] = (await redis().runBuffers('hashes', [p.counts], [])) as [Buffer[]];
      const routed = entries.flatMap((text, i) => (i % 2 === 1 ? [String(text).split(' ')[1]] : []));
      expect(routed).toEqual(names.map(() => '20'));
      expect(Math.max(...calls.map(({ answered }) => answered))).toBe(3);
      expect(calls.filter(({ sent, answered }) => answered < sent).length).toBeGreaterThan(1);
    });
  });

  describe('a stream that changes', () => {
    test('reads its events using the new configuration', async () => {
      const { send, write, log } = await start();
      await send({ 'x-group': 'k' });
      await write({ contextHeaders: { ...HEADERS, groupKey: ['x-shop'] }, source: '/new' });
      expect(await send({ 'x-group': 'k', 'x-shop': 'other' })).toMatchObject({ status: 202, groupKey: 'other' });
      expect(await log()).toEqual([
        { groupKey: 'k', meta: expect.any(String), size: 4 },
        { groupKey: 'other', meta: expect.stringContaining('"s":"/new"'), size: 4 },
      ]);
    });

    test('refuses events while it is being deleted', async () => {
      const { send, write, log } = await start();
      await send();
      await write({ state: 'closing' });
      expect(await send()).toMatchObject({ status: 409, code: 'stream_closing' });
      expect(await log()).toHaveLength(1);
    });

    test('stores its events in the new generation after it was recreated', async () => {
      const { send, write, find, part } = await start();
      const { id: before = '' } = await send();
      await write({ gen: 'gen2' });
      const { status, id = '' } = await send();
      expect(status).toBe(202);
      const found = await find(id);
      expect(eventIdOf({ ...part, gen: 'gen2' }, partRefOf(found?.ref as string) as string)).toBe(id);
      expect(await find(before)).toBeUndefined();
      // The id of the previous stream is treated like any other.
      expect(await send({ 'x-id': before })).toMatchObject({ status: 202, id: before, duplicate: false });
    });

    test('is unknown only if the workspace does not contain it; otherwise, an alarm is raised', async () => {
      const { send, p, path, tenant, alarms } = await start();
      expect(await send({}, '', `${path}2`)).toMatchObject({ status: 404, code: 'unknown_queue' });
      await send();
      expect(alarms).toEqual([]);
      await redis().call('hdel', p.meta, 'ready');
      expect(await send()).toMatchObject({ status: 503, code: 'unavailable' });
      await redis().call('del', p.meta);
      expect(await send()).toMatchObject({ status: 503, code: 'unavailable' });
      expect(new Set(alarms)).toEqual(new Set([`q:${tenant}:${QUEUE}`]));
      await redis().call('hdel', tenantKeys(tenant).index, `q:${QUEUE}`);
      expect(await send()).toMatchObject({ status: 404, code: 'unknown_queue' });
    });
  });
});
