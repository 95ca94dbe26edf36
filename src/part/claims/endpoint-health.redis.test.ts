import { describe, expect, test } from 'vitest';
import { createTestPart } from '../../../test/support/part/part.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import type { SubscriptionRow } from '../gate/subscription-row.ts';
import type { Claim } from './message.ts';

const KEYS = Array.from({ length: 120 }, (_, i) => `g${i}`);
const DAY_MS = 86_400_000;

onEachRedis(redis => {
  async function start(fields: Partial<SubscriptionRow> = { cap: 200 }) {
    const t = createTestPart(redis());
    await t.setUp({ a: fields }, KEYS);
    const d = t.dispatcher('d1');
    const claimAll = async () => {
      const claims: Claim[] = [];
      for (let more = true; more; ) {
        const answer = await d.exchange(256);
        claims.push(...answer.claims);
        ({ more } = answer);
      }
      return claims;
    };
    const sendTo = async (keys: readonly string[]) => {
      for (let at = 0; at < keys.length; at += 64) await t.send(...keys.slice(at, at + 64));
    };
    /** Claims all events and fails them. Each of them is due again in `afterMs`. */
    const failAll = async (afterMs = 5_000) => {
      const claims = await claimAll();
      for (const claim of claims) d.end(claim, 'failed', { reason: '500', dueMs: t.clock.ms + afterMs });
      return { claims, answer: await d.exchange(0) };
    };
    return { t, d, claimAll, sendTo, failAll };
  }

  describe('breaker', () => {
    test('opens after 100 failures, probes after a second, and closes if this succeeds', async () => {
      const { t, d, claimAll, sendTo, failAll } = await start();
      await sendTo(KEYS.slice(0, 100));
      const { claims, answer } = await failAll(500);
      expect(claims).toHaveLength(100);
      expect(answer.dueMs).toBe(t.clock.ms + 500);
      await sendTo(KEYS.slice(100));
      t.clock.ms += 999;
      expect(await claimAll()).toEqual([]);
      t.clock.ms += 1;
      const [probe, ...others] = await claimAll();
      expect(others).toEqual([]);
      d.end(probe as Claim);
      expect((await d.exchange(0)).answers).toEqual(['done']);
      expect(await t.hash('health')).toEqual({});
      expect((await claimAll()).length).toBeGreaterThan(100);
    });

    test('a failed probe doubles the pause', async () => {
      const { t, d, claimAll, sendTo, failAll } = await start();
      await sendTo(KEYS.slice(0, 100));
      await failAll(600_000);
      await sendTo(KEYS.slice(100));
      for (const pauseMs of [1_000, 2_000, 4_000]) {
        t.clock.ms += pauseMs - 1;
        expect(await claimAll()).toEqual([]);
        t.clock.ms += 1;
        const { claims } = await failAll(600_000);
        expect(claims).toHaveLength(1);
      }
      expect(d.held.size).toBe(0);
    });

    test('does not push anything while it is open', async () => {
      const { t, d, claimAll, sendTo, failAll } = await start();
      await sendTo(KEYS.slice(0, 100));
      await failAll(600_000);
      await t.send('g110');
      expect(await t.hash('claims')).toEqual({});
      t.clock.ms += 1_000;
      const [probe] = await claimAll();
      expect(probe?.lane.slice(8)).toBe('g110');
      d.end(probe as Claim, 'failed', { dueMs: t.clock.ms + 600_000 });
      await d.exchange(0);
      t.clock.ms += 2_000;
      expect(await claimAll()).toEqual([]);
      await t.send('g111');
      expect(await t.hash('claims')).toEqual({});
      expect((await claimAll()).map(({ lane }) => lane.slice(8))).toEqual(['g111']);
    });

    test('a probe that was released is repeated immediately', async () => {
      const { t, d, claimAll, sendTo, failAll } = await start();
      await sendTo(KEYS.slice(0, 100));
      await failAll(10);
      t.clock.ms += 1_000;
      const [probe] = await claimAll();
      d.end(probe as Claim, 'released');
      await d.exchange(0);
      expect(await claimAll()).toHaveLength(1);
    });

    test('ten failures over half a minute open it, and nine do not', async () => {
      const { t, sendTo, failAll } = await start();
      await sendTo(KEYS.slice(0, 9));
      await failAll(31_000);
      t.clock.ms += 31_000;
      expect((await t.hash('health'))[t.slot('a')]).toMatch(/^\d+ 9 0 0 - $/);
      await failAll(31_000);
      expect((await t.hash('health'))[t.slot('a')]).toMatch(/^\d+ 18 \d+ 1000 - $/);
    });
  });

  describe('a disabled endpoint', () => {
    test('a 410 disables the endpoint, and the event is sent first after it is enabled', async () => {
      const { t, d, claimAll } = await start();
      await t.send('g0', 'g1');
      const [claim, other] = await claimAll();
      d.end(claim as Claim, 'gone', { reason: '410' });
      d.end(other as Claim);
      expect((await d.exchange()).disabled).toEqual([t.slot('a')]);
      await t.send('g2');
      t.clock.ms += DAY_MS;
      expect(await claimAll()).toEqual([]);
      await t.setRow('a', { cap: 200, enabledMs: t.clock.ms });
      const claims = await claimAll();
      expect(claims.map(({ lane, attempts }) => [lane.slice(8), attempts])).toEqual([
        ['g0', 1],
        ['g2', 0],
      ]);
      expect(await t.hash('health')).toEqual({});
    });

    test.each([
      ['gone', 'delivered'],
      ['dead', 'delivered'],
      ['dead', 'expired'],
    ] as const)('a 410 (%s) is processed before lanes continue, even if it was %s', async (gone, other) => {
      const { t, d, claimAll } = await start();
      await t.send('g0', 'g0', 'g1', 'g1');
      const claims = (await claimAll()) as [Claim, Claim];
      d.end(claims[0], other);
      d.end(claims[1], gone, { reason: '410' });
      expect(await d.exchange()).toMatchObject({ disabled: [t.slot('a')], claims: [] });
      t.clock.ms += DAY_MS;
      expect(await claimAll()).toEqual([]);
      await t.setRow('a', { cap: 200, enabledMs: t.clock.ms });
      expect(await claimAll()).toHaveLength(2);
    });

    test('is disabled after five days with only failures', async () => {
      const { t, sendTo, failAll } = await start();
      await sendTo(KEYS.slice(0, 10));
      await failAll(5 * DAY_MS);
      t.clock.ms += 5 * DAY_MS;
      const { answer } = await failAll();
      expect(answer.disabled).toEqual([t.slot('a')]);
    });
  });

  describe('pace', () => {
    test('does not start more attempts per second than allowed', async () => {
      const { t, claimAll, sendTo } = await start({ cap: 100, maxPerSecond: 10 });
      await sendTo(KEYS.slice(0, 60));
      let started = 0;
      for (let ms = 0; ms < 2_000; ms += 50) {
        started += (await claimAll()).length;
        t.clock.ms += 50;
      }
      expect(started).toBeGreaterThanOrEqual(19);
      expect(started).toBeLessThanOrEqual(21);
    });

    test('does not count an attempt that was not sent', async () => {
      const { t, d, claimAll, sendTo } = await start({ cap: 100, maxPerSecond: 1 });
      await sendTo(KEYS.slice(0, 2));
      const [claim] = (await claimAll()) as [Claim];
      expect(await claimAll()).toEqual([]);
      d.end(claim, 'released', { latencyMs: undefined });
      const again = (await d.exchange()).claims;
      expect(again).toHaveLength(1);
      d.end(again[0] as Claim);
      expect(await claimAll()).toEqual([]);
      t.clock.ms += 999;
      expect(await claimAll()).toEqual([]);
      t.clock.ms += 1;
      expect(await claimAll()).toHaveLength(1);
    });

    test('does not start more attempts at once after several were not sent', async () => {
      const { t, d, claimAll, sendTo } = await start({ cap: 100, maxPerSecond: 40 });
      await sendTo(KEYS.slice(0, 10));
      const claims = await claimAll();
      expect(claims).toHaveLength(2);
      t.clock.ms += 1_000;
      for (const claim of claims) d.end(claim, 'released', { latencyMs: undefined });
      expect((await d.exchange()).claims).toHaveLength(2);
      expect(await claimAll()).toEqual([]);
    });

    test('returns when the next attempt can be started', async () => {
      const { t, d, sendTo } = await start({ cap: 100, maxPerSecond: 4 });
      await sendTo(KEYS.slice(0, 3));
      expect((await d.exchange()).claims).toHaveLength(1);
      const { dueMs, claims } = await d.exchange();
      expect(claims).toEqual([]);
      expect(dueMs).toBe(t.clock.ms + 250);
    });
  });
});
