import { expect, test } from 'vitest';
import { event, startPart } from '../../../test/support/part/part.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import type { Claim } from '../claims/message.ts';
import { createPartBacklogStore } from './backlog.ts';

onEachRedis(redis => {
  async function start(...args: Parameters<typeof startPart> extends [unknown, ...infer Rest] ? Rest : never) {
    const world = await startPart(redis(), ...args);
    const { tenant, queue, gen } = world.t.part;
    const client = { ...redis(), ...world.t.client };
    const store = createPartBacklogStore(client, ({ integration }) =>
      integration === 'int_x' ? { tenant, queue } : undefined,
    );
    const inbox = (sub: string) => ({ integration: 'int_x', sub, inc: 'inc1' });
    const lookAt = async (sub: string, settledTo = '0-0') =>
      (await store.readOldestOpen([{ ...inbox(sub), settledTo }]))[0];
    const unrouted = (...subs: string[]) => store.readUnrouted(tenant, queue, gen, subs.map(inbox));
    return { ...world, store, inbox, lookAt, unrouted };
  }

  test('returns the next event after the position of each subscription', async () => {
    const { t, unrouted } = await start({ a: {}, b: {} }, ['k']);
    expect(await unrouted()).toEqual([]);
    await t.setRow('a', { route: 'paused' });
    await t.send('k');
    t.clock.ms += 1_000;
    await t.send('k');
    expect(await unrouted('b', 'a')).toEqual([undefined, t.clock.ms - 1_000]);
    // This includes more subscriptions than a call reads.
    const many = Array.from({ length: 600 }, (_, i) => (i % 2 === 0 ? 'b' : 'a'));
    expect(await unrouted(...many)).toEqual(many.map(sub => (sub === 'a' ? t.clock.ms - 1_000 : undefined)));
  });

  test('returns the oldest open event of each inbox in the same order, and none for unknown inboxes', async () => {
    const { t, store, inbox } = await start({ a: { send: 'held' }, b: {} }, ['k']);
    await t.deactivate('b', 'k');
    const openMs = t.clock.ms;
    await t.send('k');
    const looks = [{ ...inbox('b') }, { ...inbox('a'), integration: 'int_unknown' }, { ...inbox('a') }];
    expect(await store.readOldestOpen(looks.map(look => ({ ...look, settledTo: '0-0' })))).toEqual([
      { ms: undefined, exact: true, settledTo: '0-0' },
      { ms: undefined, exact: true, settledTo: '0-0' },
      { ms: openMs, exact: true, settledTo: '0-0' },
    ]);
  });

  test('an event in progress is open because it may wait again', async () => {
    const { t, d, lookAt } = await start({ a: {}, b: {} }, ['k', 'l']);
    const openMs = t.clock.ms;
    await t.send('k');
    t.clock.ms += 1_000;
    await t.send('l');
    const claims = (await d.exchange()).claims as Claim[];
    expect(claims).toHaveLength(4);
    expect(await lookAt('a')).toMatchObject({ ms: openMs, exact: true });
    // The owner has ended one event, so its attempt is irrelevant.
    const ended = claims.find(({ lane }) => lane === `${t.slot('b')}k`) as Claim;
    await redis().call('hset', t.keys.claims, ended.lane, `x${ended.ref}d1`);
    for (const claim of claims) if (claim.slot === t.slot('a')) d.end(claim);
    await d.exchange(0);
    expect(await lookAt('a')).toMatchObject({ ms: undefined, exact: true });
    expect(await lookAt('b')).toMatchObject({ ms: openMs + 1_000 });
  });

  test('never passes an open event in a long log', async () => {
    const { t, d, lookAt } = await start({ a: {} }, ['k', 'l']);
    for (let i = 0; i < 4; i++) await t.ingest(...Array.from({ length: 64 }, () => event('unknown')));
    t.clock.ms += 1_000;
    const openMs = t.clock.ms;
    await t.send('k');
    t.clock.ms += 1_000;
    for (let i = 0; i < 4; i++) await t.ingest(...Array.from({ length: 64 }, () => event('l')));
    const claim = (await d.exchange()).claims.find(({ lane }) => lane.endsWith('k')) as Claim;
    const first = await lookAt('a');
    expect(first?.exact).toBe(false);
    const second = await lookAt('a', first?.settledTo);
    expect(second).toMatchObject({ ms: openMs, exact: true });
    d.end(claim, 'failed', { reason: '500', dueMs: t.clock.ms + 60_000 });
    await d.exchange(0);
    expect(await lookAt('a', second?.settledTo)).toMatchObject({ ms: openMs, exact: true });
  });

  test('uses the log as a lower bound if there are too many claims', async () => {
    const { t, d, lookAt } = await start({ a: { cap: 2_000, unordered: true }, b: {} }, ['k']);
    const oldestMs = t.clock.ms;
    await t.ingest(event('unknown'));
    t.clock.ms += 1_000;
    await t.deactivate('b', 'k');
    for (let i = 0; i < 32; i++) await t.ingest(...Array.from({ length: 64 }, () => event('k')));
    while ((await d.exchange(256, { limit: 3_000 })).claims.length > 0);
    expect(d.held.size).toBe(2_048);
    expect(await lookAt('a')).toMatchObject({ ms: oldestMs, exact: false });
    expect(await lookAt('b')).toMatchObject({ ms: undefined, exact: true });
  });
});
