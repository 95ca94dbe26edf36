import { expect, test } from 'vitest';
import type { Claim } from '../../../src/part/claims/message.ts';
import { onEachRedis } from '../../../src/redis/testing/each-redis.ts';
import { READY_MS, startPart } from '../../support/part/part.ts';
import { NOT_PUSHED } from '../../support/part/part-inbox.ts';

const HOUR_MS = 3_600_000;

onEachRedis(redis => {
  async function start(cap = 8) {
    const { t, d, keyOf } = await startPart(redis(), { a: { cap } });
    const other = t.dispatcher('d2');
    const claim = async (by = d) => (await by.exchange(64, NOT_PUSHED)).claims;
    return { t, d, other, claim, keyOf };
  }

  test.each([8, 1])('the claims of a failed dispatcher are taken over after the usual time, cap %i', async cap => {
    const { t, d, other, claim, keyOf } = await start(cap);
    await t.send('k', 'l');
    const held = await claim();
    expect(held).toHaveLength(2);
    t.clock.ms -= HOUR_MS;
    // This dispatcher may still be running.
    expect(await claim(other)).toEqual([]);
    expect(await t.evict(d.name)).toEqual({ answer: 'HELD' });
    t.clock.ms += READY_MS - 1;
    expect(await other.exchange(64, NOT_PUSHED)).toMatchObject({ claims: [], lapsed: [] });
    t.clock.ms += 1;
    expect((await other.exchange(64, NOT_PUSHED)).lapsed).toEqual([d.name]);
    expect(await t.evict(d.name)).toEqual({ answer: 'OK', claims: 2 });
    expect((await claim(other)).map(({ lane, lapses }) => [keyOf(lane), lapses])).toEqual([
      ['k', 1],
      ['l', 1],
    ]);
  });

  test('an active dispatcher keeps its claims and continues their lanes', async () => {
    const { t, d, other, claim } = await start();
    const [, second] = await t.send('k', 'k');
    const [first] = await claim();
    t.clock.ms -= HOUR_MS;
    await claim(other);
    t.clock.ms += READY_MS - 1;
    expect(await claim()).toEqual([]);
    t.clock.ms += READY_MS - 1;
    expect((await other.exchange(64, NOT_PUSHED)).lapsed).toEqual([]);
    d.end(first as Claim);
    expect(await claim()).toMatchObject([{ ref: second, lapses: 0 }]);
  });

  test('waiting events are claimed immediately, and retries after their delay', async () => {
    const { t, d, claim, keyOf } = await start();
    const [ref = ''] = await t.send('k');
    const delayMs = 60_000;
    d.end((await claim())[0] as Claim, 'failed', { dueMs: t.clock.ms + delayMs });
    expect((await d.exchange(0, NOT_PUSHED)).dueMs).toBe(t.clock.ms + delayMs);
    await t.send('l');
    t.clock.ms -= HOUR_MS;
    const dueMs = t.clock.ms + delayMs;
    const answer = await d.exchange(64, NOT_PUSHED);
    expect(answer.claims.map(({ lane }) => keyOf(lane))).toEqual(['l']);
    expect(answer.dueMs).toBe(dueMs);
    // The attempt is still recorded, along with the new time.
    expect((await t.hash('tries'))[`${t.slot('a')}k\0${ref}`]).toBe(`1 0 ${dueMs},0 200 5`);
    t.clock.ms = dueMs - 1;
    expect(await claim()).toEqual([]);
    t.clock.ms = dueMs;
    expect((await claim()).map(({ lane }) => keyOf(lane))).toEqual(['k']);
  });

  test('a retry keeps its due time if the clock is set back by less than the elapsed delay', async () => {
    const { t, d, claim, keyOf } = await start();
    await t.send('k');
    const dueMs = t.clock.ms + HOUR_MS;
    d.end((await claim())[0] as Claim, 'failed', { dueMs });
    await d.exchange(0, NOT_PUSHED);
    t.clock.ms += HOUR_MS / 2;
    await d.exchange(0, NOT_PUSHED);
    t.clock.ms -= HOUR_MS / 4;
    expect((await d.exchange(0, NOT_PUSHED)).dueMs).toBe(dueMs);
    t.clock.ms = dueMs;
    expect((await claim()).map(({ lane }) => keyOf(lane))).toEqual(['k']);
  });

  test('thousands of retries are moved in slices, each exactly once, even if many of them are due at the same time', async () => {
    const { t, d } = await startPart(redis(), { a: { cap: 5_000, unordered: true } });
    const claims: Claim[] = [];
    for (let call = 0; call < 50; call++) {
      await t.send(...Array.from({ length: 50 }, () => 'k'));
      claims.push(...(await d.exchange(64, { ...NOT_PUSHED, limit: 5_000 })).claims);
    }
    expect(claims).toHaveLength(2_500);
    const delayOf = (i: number) => (i < 1_500 ? 60_000 : 1_000 + i);
    claims.forEach((claim, i) => d.end(claim, 'failed', { dueMs: t.clock.ms + delayOf(i) }));
    await d.exchange(0, NOT_PUSHED);
    t.clock.ms -= HOUR_MS;
    const { meta, retries } = t.keys;
    let calls = 0;
    for (let more = true; more && calls < 10; calls++) more = (await d.exchange(0, NOT_PUSHED)).more;
    expect(calls).toBe(3);
    expect(await redis().call('hexists', meta, 'back')).toBe(0);
    const due = (await redis().call('zrange', retries, 0, -1, 'WITHSCORES')) as string[];
    const delays = due.filter((_, i) => i % 2 === 1).map(each => Number(each) - t.clock.ms);
    expect(delays.toSorted((a, b) => a - b)).toEqual(claims.map((_, i) => delayOf(i)).toSorted((a, b) => a - b));
  });

  test('all subscriptions with waiting events continue to take turns', async () => {
    const names = Array.from({ length: 40 }, (_, n) => `s${n}`);
    const subs = Object.fromEntries(names.map(name => [name, { cap: 100, unordered: true }]));
    const { t, d } = await startPart(redis(), subs, ['k']);
    await d.exchange(0, NOT_PUSHED);
    for (let n = 0; n < 20; n++) await t.send('k', 'k');
    const serve = async () => {
      const { claims } = await d.exchange(32, NOT_PUSHED);
      for (const claim of claims) d.end(claim);
      t.clock.ms += 10;
      return claims.map(({ slot }) => slot);
    };
    for (let n = 0; n < 4; n++) await serve();
    t.clock.ms -= HOUR_MS;
    const served = new Set<string>();
    for (let n = 0; n < 4; n++) for (const slot of await serve()) served.add(slot);
    expect(served.size).toBe(names.length);
  });
});
