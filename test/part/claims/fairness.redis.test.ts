import { expect, test } from 'vitest';
import type { Claim } from '../../../src/part/claims/message.ts';
import { onEachRedis } from '../../../src/redis/testing/each-redis.ts';
import { startPart } from '../../support/part/part.ts';
import { NOT_PUSHED } from '../../support/part/part-inbox.ts';

const RETRY_MS = 5_000;

onEachRedis(redis => {
  /** A subscription without order, so each event is a separate lane. */
  async function start(cap: number) {
    const { t, d } = await startPart(redis(), { a: { cap, unordered: true } }, ['k']);
    const dueMs = t.clock.ms + RETRY_MS;
    async function send(count: number): Promise<string[]> {
      const refs: string[] = [];
      while (refs.length < count)
        refs.push(...(await t.send(...Array<string>(Math.min(64, count - refs.length)).fill('k'))));
      return refs;
    }
    const claim = async (most = 64) => (await d.exchange(most, NOT_PUSHED)).claims;
    const end = async (claims: readonly Claim[], outcome: 'delivered' | 'failed', atMs = dueMs) => {
      for (const each of claims) d.end(each, outcome, { reason: '500', dueMs: atMs });
      await d.exchange(0, NOT_PUSHED);
    };
    /**
     * Fails all waiting events once. Each turn includes one successful event, which prevents the breaker from opening.
     */
    async function failAll(): Promise<void> {
      for (let claims = await claim(); claims.length > 0; claims = await claim()) {
        await end(claims.slice(1), 'failed');
        await end(claims.slice(0, 1), 'delivered');
      }
      t.clock.ms = dueMs;
    }
    return { t, send, claim, end, failAll };
  }

  test('sends a new event with the next claim, even with thousands of due retries', async () => {
    const { t, send, claim, end, failAll } = await start(100);
    await send(2_000);
    await failAll();
    const [fresh] = await send(1);
    expect((await claim(1)).map(({ ref }) => ref)).toEqual([fresh]);
    const retries = await claim();
    expect(retries).toHaveLength(64);
    expect(retries.every(({ attempts }) => attempts === 1)).toBe(true);
    await end(retries, 'failed', t.clock.ms + 300_000);
    await end((await claim()).slice(0, 1), 'delivered');
    const [next] = await send(1);
    expect((await claim()).map(({ ref }) => ref)).toContain(next);
  });

  test('retries that do not respond leave a quarter of the claims to first attempts', async () => {
    const { send, claim, failAll } = await start(16);
    await send(60);
    await failAll();
    expect(await claim()).toHaveLength(24);
    expect(await claim()).toEqual([]);
    const fresh = await send(9);
    expect((await claim()).map(({ ref }) => ref)).toEqual(fresh.slice(0, 8));
  });

  test('an eighth of the claims are retries if there are always first attempts', async () => {
    const { t, send, claim, end, failAll } = await start(64);
    await send(200);
    await failAll();
    await send(2_000);
    let [firsts, retries] = [0, 0];
    for (let n = 0; n < 160; n++) {
      const claims = await claim(4);
      retries += claims.filter(({ attempts }) => attempts > 0).length;
      firsts += claims.filter(({ attempts }) => attempts === 0).length;
      await end(claims, 'delivered');
      t.clock.ms += 1;
    }
    expect([firsts, retries]).toEqual([560, 80]);
  });

  test('a subscription with thousands of events delays another subscription by at most one turn', async () => {
    const { t, d } = await startPart(redis(), { busy: { cap: 8, unordered: true }, calm: { cap: 8 } }, []);
    await t.activate('busy', 'many');
    await t.activate('calm', 'few');
    for (let n = 0; n < 20; n++) await t.send(...Array<string>(64).fill('many'));
    await t.send('few');
    const { claims } = await d.exchange(4, NOT_PUSHED);
    expect(claims.some(({ slot }) => slot === t.slot('calm'))).toBe(true);
    expect(claims).toHaveLength(4 - 1);
  });

  test.each([1, 100])('each of many subscriptions is served at least by every second call, cap %i', async cap => {
    const names = Array.from({ length: 40 }, (_, n) => `s${n}`);
    const subs = Object.fromEntries(names.map(name => [name, { cap, unordered: true }]));
    const { t, d } = await startPart(redis(), subs, ['k']);
    for (let n = 0; n < 20; n++) await t.send('k', 'k');
    let before = new Set<string>();
    for (let n = 0; n < 10; n++) {
      t.clock.ms += 10;
      const { claims } = await d.exchange(64, NOT_PUSHED);
      expect(claims).toHaveLength(64);
      for (const claim of claims) d.end(claim);
      const now = new Set(claims.map(({ slot }) => slot));
      if (n > 0) expect(new Set([...now, ...before]).size).toBe(names.length);
      before = now;
    }
  });
});
