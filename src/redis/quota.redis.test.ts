import { randomUUID } from 'node:crypto';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { tokensOf } from '../core/events/tokens.ts';
import type { IngressEvent, IngressQueue } from './ingress-store.ts';
import { queueKeys } from './keys.ts';
import type { QueueEntry, QueuePage } from './queue-store.ts';
import { onEachRedis } from './testing/each-redis.ts';
import { createTenant, event, QUEUE, START_MS } from './testing/tenant.ts';

const SOURCE = '/events/x/orders';
/** What `ingest` counts for two stream entries and the hash of the id. */
const OVERHEAD = 400;
const BATCH = 64;

/** What an event takes of the quota. */
function costOf({ id, type, contentType, forward, attributes, groupKey, body }: IngressEvent): number {
  const meta = { i: id, s: SOURCE, ...(type && { t: type }), ...(contentType && { c: contentType }) };
  const passedOn = Object.keys(forward).length === 0 ? meta : { ...meta, f: forward };
  const whole = attributes === undefined ? passedOn : { ...passedOn, a: attributes };
  return OVERHEAD + body.length + Buffer.byteLength(groupKey ?? '') + Buffer.byteLength(JSON.stringify(whole));
}

onEachRedis(redis => {
  async function start(queue: { readonly maxBytes?: number; readonly gen?: string } = {}) {
    const t = createTenant(redis());
    await t.apply(t.routes({}, { maxBytes: 1e9, source: SOURCE, ...queue }));
    const keys = queueKeys(t.tenant, QUEUE, 'gen1');
    const ingest = async (events: readonly IngressEvent[]) => {
      const config = (await t.ingress.readQueue(t.tenant, QUEUE)) as IngressQueue;
      const answers: string[] = [];
      for (let at = 0; at < events.length; at += BATCH) {
        const { outcomes } = await t.ingress.ingest(t.tenant, QUEUE, config, events.slice(at, at + BATCH));
        answers.push(...outcomes.map(({ answer }) => answer));
      }
      return answers;
    };
    const bytes = async () => Number(await redis().call('hget', keys.meta, 'bytes'));
    const trim = async () => {
      const owned = await t.own();
      while (((await t.queues.trim(owned, t.nowMs(), `${t.clock.ms + 1}-0`, [])) as { more: boolean }).more);
    };
    return { t, keys, ingest, bytes, trim };
  }

  test('events without a body use up the quota by their headers', async () => {
    const forward = Object.fromEntries(Array.from({ length: 4 }, (_, i) => [`x-header-${i}`, 'v'.repeat(2_038)]));
    const headers = Array.from({ length: 200 }, () => ({ ...event(randomUUID(), 'shop-1', ''), forward }));
    const cost = costOf(headers[0] as IngressEvent);
    expect(cost).toBeGreaterThan(8 * 1024 + OVERHEAD);
    const { ingest, bytes } = await start({ maxBytes: 100 * cost + cost - 1 });
    const answers = await ingest(headers);
    expect(answers.map(answer => answer === 'OK')).toEqual(headers.map((_, i) => i < 100));
    expect(answers.at(-1)).toBe('FULL');
    expect(await bytes()).toBe(100 * cost);
  });

  test('attributes of a CloudEvent count against the quota as they are stored', async () => {
    const attributes = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`x${i}`, 'caf\xe9'.repeat(30)]));
    const events = Array.from({ length: 12 }, () => ({ ...event(randomUUID(), 'shop-1', ''), attributes }));
    const cost = costOf(events[0] as IngressEvent);
    expect(cost).toBeGreaterThan(60 * 150 + OVERHEAD);
    const { ingest, bytes } = await start({ maxBytes: 10 * cost });
    expect(await ingest(events)).toEqual([...Array(10).fill('OK'), 'FULL', 'FULL']);
    expect(await bytes()).toBe(10 * cost);
  });

  test('an event that fits exactly is taken, and after it none', async () => {
    const [first, second] = [event('1', 'k', 'first'), event('2', 'key', 'the second')];
    const { ingest } = await start({ maxBytes: costOf(first) + costOf(second) });
    expect(await ingest([first, second, event('3', undefined, '')])).toEqual(['OK', 'OK', 'FULL']);
    const tight = await start({ maxBytes: costOf(first) + costOf(second) - 1 });
    expect(await tight.ingest([first, second])).toEqual(['OK', 'FULL']);
  });

  test('what any events took is given back when they are trimmed, to the byte, and tokens are of the body alone', async () => {
    const anyEvent = fc.record({
      groupKey: fc.option(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 }), { nil: undefined }),
      body: fc.oneof(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 40_000 })),
      header: fc.option(fc.integer({ min: 0, max: 2_048 }), { nil: undefined }),
      type: fc.option(fc.constant('order.made'), { nil: undefined }),
      contentType: fc.option(fc.constant('application/json'), { nil: undefined }),
    });
    const { t, keys, ingest, bytes, trim } = await start();
    await fc.assert(
      fc.asyncProperty(fc.array(anyEvent, { minLength: 1, maxLength: 100 }), async shapes => {
        const events = shapes.map(
          ({ groupKey, body, header, ...rest }): IngressEvent => ({
            ...event(randomUUID(), groupKey?.replaceAll(/\p{Cc}/gu, '-'), Buffer.alloc(body, 'b')),
            ...rest,
            forward: header === undefined ? {} : { 'x-header': 'v'.repeat(header) },
          }),
        );
        const told = await ingest([...events, ...events.slice(0, 3)]);
        expect(new Set(told.slice(0, events.length))).toEqual(new Set(['OK']));
        expect(await bytes()).toBe(events.reduce((sum, each) => sum + costOf(each), 0));

        const page = (await t.queues.next(await t.own(), t.nowMs(), 256)) as QueuePage;
        const sizes = events.map(({ body }) => body.length);
        expect(page.entries.map((entry: QueueEntry) => entry.bytes)).toEqual(sizes);
        const ids = page.entries.map(({ id }) => id);
        const priced = (await redis().run('sizes', [keys.events], ids)) as string[];
        const tokens = ids.map((_, i) => tokensOf(Number(priced[2 * i + 1])));
        expect(tokens).toEqual(sizes.map(tokensOf));
        await trim();
        expect(await bytes()).toBe(0);
        expect(await redis().call('xlen', keys.events)).toBe(0);
        t.clock.ms += 1_000;
      }),
      { numRuns: 15 },
    );
  });

  test('the series counts the bytes of bodies', async () => {
    const { keys, ingest } = await start();
    await ingest([event('1', 'k', 'four'), event('2', 'k', ''), event('3', 'k', 'three')]);
    const minute = Math.floor(START_MS / 60_000);
    expect(await redis().call('hget', keys.meta, 'arrived')).toMatch(new RegExp(`;${minute} 3 9 0$`));
  });

  test('an event that an older version stored gives back what that one took', async () => {
    const { keys, ingest, bytes, trim } = await start();
    await ingest([event('1', 'k')]);
    await redis().call('xadd', keys.events, `${START_MS}-9`, 'g', 'k', 's', 50);
    await redis().call('hincrby', keys.meta, 'bytes', 50);
    await trim();
    expect(await bytes()).toBe(0);
  });

  test('a queue that was made again has all of its quota, and whoever trims the old one gives nothing back to it', async () => {
    const { t, keys, ingest, bytes } = await start();
    await ingest(Array.from({ length: 10 }, () => event(randomUUID(), 'k', 'x'.repeat(1_000))));
    const owned = await t.own();
    await t.apply(t.routes({}, { maxBytes: 1e9, source: SOURCE, gen: 'gen2' }));
    expect(await bytes()).toBe(0);
    const anew = event('anew', 'k');
    expect(await ingest([anew])).toEqual(['OK']);
    expect(await bytes()).toBe(costOf(anew));
    expect(await t.queues.trim(owned, t.nowMs(), `${START_MS + 1}-0`, [])).toBe('FENCED');
    expect(await bytes()).toBe(costOf(anew));
    expect(await redis().call('xlen', keys.events)).toBe(10);
  });
});
