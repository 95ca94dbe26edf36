import { expect, test } from 'vitest';
import { createTestPart, event, READY_MS, START_MS } from '../../../test/support/part/part.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { createLookAtWork } from './look-at-work.ts';

const RETENTION_MS = 3_600_000;

onEachRedis(redis => {
  async function start() {
    const t = createTestPart(redis());
    await t.setUp({ a: {}, b: {} }, ['k', 'l']);
    await t.change({ kind: 'meta', field: 'retentionMs', value: String(RETENTION_MS) });
    const look = createLookAtWork(t.client);
    return { t, d: t.dispatcher('d1'), look: () => look(t.part) };
  }

  test('a part without events has no work, and a removed one is not included', async () => {
    const { t, look } = await start();
    expect(await look()).toEqual({
      nowMs: START_MS,
      open: 0,
      isWaiting: false,
      idleSinceMs: undefined,
      hasEvents: false,
      routing: undefined,
      expired: undefined,
    });
    expect(await createLookAtWork(t.client)({ ...t.part, gen: 'other' })).toBeUndefined();
  });

  test('deliveries are idle since they could be sent, until a dispatcher is active', async () => {
    const { t, d, look } = await start();
    await t.send('k');
    t.clock.ms += 700;
    await t.send('l');
    expect(await look()).toMatchObject({ open: 4, isWaiting: true, idleSinceMs: START_MS, hasEvents: true });
    await d.exchange(1);
    expect(await look()).toMatchObject({ open: 4, isWaiting: true, idleSinceMs: undefined });
    // The dispatcher crashes. Waiting events and its claims have been idle since it was active.
    t.clock.ms += 10_000;
    expect(await look()).toMatchObject({ idleSinceMs: START_MS + 700 + READY_MS });
  });

  test('reports claims of a crashed dispatcher as idle', async () => {
    const { t, d, look } = await start();
    await t.send('k');
    await d.exchange();
    t.clock.ms += READY_MS - 1;
    expect(await look()).toMatchObject({ open: 2, isWaiting: true, idleSinceMs: undefined });
    t.clock.ms += 1;
    expect(await look()).toMatchObject({ open: 2, idleSinceMs: START_MS + READY_MS });
    await redis().call('del', t.keys.ready);
    expect(await look()).toMatchObject({ idleSinceMs: 0 });
  });

  test('reports a retry as idle when it is due', async () => {
    const { t, d, look } = await start();
    await t.send('k');
    for (const claim of (await d.exchange()).claims) d.end(claim, 'failed', { dueMs: START_MS + 60_000 });
    await d.exchange();
    t.clock.ms += 59_000;
    expect(await look()).toMatchObject({ open: 2, isWaiting: true, idleSinceMs: undefined });
    t.clock.ms += 3_000;
    expect(await look()).toMatchObject({ open: 2, isWaiting: true, idleSinceMs: START_MS + 60_000 });
  });

  test('counts paused deliveries as open, but not as idle', async () => {
    const { t, look } = await start();
    for (const name of ['a', 'b']) await t.setRow(name, { send: 'held' });
    await t.send('k');
    expect(await look()).toMatchObject({ open: 2, isWaiting: false, idleSinceMs: undefined });
  });

  test('reports a held part as stalled, except if it waits for tokens', async () => {
    const { t, look } = await start();
    await redis().call('hdel', t.keys.keys, '');
    await t.send('k');
    const held = await look();
    expect(held?.routing).toMatch(/^gates /);
    await t.change({ kind: 'marker' });
    await t.advanceAll();
    expect(await look()).toMatchObject({ routing: undefined });
    await redis().call('hset', t.keys.meta, 'hold', 'tokens');
    expect(await look()).toMatchObject({ routing: undefined });
  });

  test('reports routing as stalled until a subscription that is behind moves', async () => {
    const { t, look } = await start();
    await t.setRow('a', { route: 'paused' });
    await t.send('k');
    await t.setRow('b', { route: 'paused' });
    await t.send('k');
    expect(await look()).toMatchObject({ routing: undefined });
    await t.setRow('a', {}, 'behind');
    const before = await look();
    expect(before?.routing).toBeDefined();
    expect((await look())?.routing).toBe(before?.routing);
    await t.advanceAll();
    expect(await look()).toMatchObject({ routing: undefined });
  });

  test('routing makes progress if any subscription is advanced', async () => {
    const { t, look } = await start();
    for (const name of ['a', 'b']) {
      await t.setRow(name, { route: 'paused' });
      for (let i = 0; i < 10; i++) await t.ingest(...Array.from({ length: 60 }, () => event('k')));
    }
    await t.setRow('a', {}, 'behind');
    await t.setRow('b', {}, 'behind');
    const seen = [(await look())?.routing];
    for (let calls = 0; calls < 4; calls++) {
      t.clock.ms += 10;
      await t.advance();
      seen.push((await look())?.routing);
    }
    expect(seen).not.toContain(undefined);
    expect(new Set(seen).size).toBe(5);
  });

  test('an event is expired when its removal should be complete', async () => {
    const { t, look } = await start();
    await t.send('x');
    t.clock.ms += RETENTION_MS + 59_000;
    expect(await look()).toMatchObject({ hasEvents: true, expired: undefined });
    t.clock.ms += 2_000;
    expect(await look()).toMatchObject({
      expired: { id: `${START_MS}-0`, sinceMs: START_MS + RETENTION_MS + 60_000 },
    });
  });
});
