import { expect, test } from 'vitest';
import { startPart } from '../../../test/support/part/part.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { RECORDS_MS } from '../keys.ts';
import type { Claim } from './message.ts';

onEachRedis(redis => {
  const start = (subs?: Parameters<typeof startPart>[1]) => startPart(redis(), subs);

  test('responses are in the order of the results, regardless of how they are processed', async () => {
    const { t, d } = await start({ a: {}, b: {} });
    await t.send('k', 'l');
    const { claims } = await d.exchange();
    const of = (sub: string, groupKey: string) =>
      claims.find(({ lane }) => lane === t.slot(sub) + groupKey) as NonNullable<(typeof claims)[0]>;
    d.end(of('a', 'k'), 'failed', { reason: '500', dueMs: t.clock.ms + 9_000, attempted: 'HttpError' });
    d.end(of('b', 'k'));
    d.end({ lane: `${t.slot('a')}x`, ref: of('b', 'l').ref }, 'dead', { reason: '500' });
    d.end(of('a', 'l'));
    d.end(of('b', 'l'));
    d.end(of('b', 'l'));
    const { answers } = await d.exchange();
    expect(answers).toEqual(['done', 'done', 'stale', 'done', 'done', 'ended']);
    expect(await t.counts('a')).toEqual([0, 2, 0, 1, 0, 0]);
    expect(await t.counts('b')).toEqual([0, 2, 0, 2, 0, 0]);
  });

  test.each([
    ['delivered', 'failed', 'HttpError'],
    ['failed', 'delivered', 'Succeeded'],
  ] as const)(
    'if a call ends with %s and then %s, the status of the last attempt is %s',
    async (one, other, outcome) => {
      const { t, d } = await start();
      await t.send('k', 'l');
      const claims = (await d.exchange()).claims as [Claim, Claim];
      for (const [i, ending] of [one, other].entries()) {
        const failed = { reason: '500', dueMs: t.clock.ms + 9_000, attempted: 'HttpError' } as const;
        d.end(claims[i] as Claim, ending, ending === 'failed' ? failed : {});
      }
      const { news } = await d.exchange();
      expect(news.map(each => each.news.now.trouble)).toEqual([`${outcome} 0`]);
    },
  );

  test('the same claim twice in a call is recorded once', async () => {
    const { t, d } = await start();
    const [ref = ''] = await t.send('k', 'k');
    const [claim] = (await d.exchange()).claims as [Claim];
    d.end(claim);
    d.end(claim);
    const next = await d.exchange();
    expect(next.answers).toEqual(['done', 'ended']);
    expect(next.claims).toHaveLength(1);
    expect(await t.records(ref)).toHaveLength(1);
    expect(await t.counts('a')).toEqual([1, 2, 0, 1, 0, 0]);
  });

  test('an event with failed attempts keeps them in its record, along with records without any', async () => {
    const { t, d } = await start();
    const [tried = '', fresh = ''] = await t.send('k', 'l');
    const [first, second] = (await d.exchange()).claims as [Claim, Claim];
    d.end(first, 'failed', { reason: '500', dueMs: t.clock.ms + 5 });
    await d.exchange();
    t.clock.ms += 5;
    const [again] = (await d.exchange()).claims as [Claim];
    d.end(second);
    d.end(again);
    expect((await d.exchange()).answers).toEqual(['done', 'done']);
    expect(await t.records(tried)).toMatchObject([{ attempts: 2, failed: [{ reason: '500' }] }]);
    expect(await t.records(fresh)).toMatchObject([{ attempts: 1, failed: [] }]);
    expect(await t.hash('tries')).toEqual({});
  });

  test('a delivery by an earlier holder is recorded along with deliveries of the current one', async () => {
    const { t, d } = await start();
    const e = t.dispatcher('d2');
    const [ref = ''] = await t.send('k', 'l');
    const [lost, kept] = (await d.exchange()).claims as [Claim, Claim];
    e.end(kept);
    e.end(lost);
    expect((await e.exchange(0)).answers).toEqual(['done', 'done']);
    expect(await t.records(ref)).toHaveLength(1);
    // The lanes remain claimed by their holder.
    expect((await t.counts('a'))[0]).toBe(2);
  });

  test('many records of an event fill chunks within a single call', async () => {
    const subs = Object.fromEntries(Array.from({ length: 150 }, (_, i) => [`s${i}`, {}]));
    const { t, d } = await start(subs);
    const [ref = ''] = await t.send('k');
    const claims: Claim[] = [];
    while (claims.length < 150) claims.push(...(await d.exchange(200, { limit: 1_000 })).claims);
    for (const claim of claims) d.end(claim);
    await d.exchange();
    const records = await t.records(ref);
    expect(new Set(records.map(({ slot }) => slot)).size).toBe(150);
    const sizes = await t.chunkSizes(ref);
    expect(sizes.length).toBeGreaterThan(1);
    expect(Math.max(...sizes)).toBeLessThan(1_700);
  });

  test('events of different buckets of records end in the same call', async () => {
    const { t, d } = await start();
    const [old = ''] = await t.send('k');
    t.clock.ms += RECORDS_MS;
    const [fresh = ''] = await t.send('l');
    const { claims } = await d.exchange();
    expect(claims.map(({ ref }) => ref)).toEqual([old, fresh]);
    for (const claim of claims) d.end(claim);
    expect((await d.exchange()).answers).toEqual(['done', 'done']);
    expect(await t.records(old)).toHaveLength(1);
    expect(await t.records(fresh)).toHaveLength(1);
  });
});
