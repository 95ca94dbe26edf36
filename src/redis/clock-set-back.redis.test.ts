import { randomUUID } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createHintIndex } from './hints.ts';
import type { IngressQueue } from './ingress-store.ts';
import { hintKeys, hintPartition } from './keys.ts';
import { onEachRedis } from './testing/each-redis.ts';
import { createInbox } from './testing/inbox.ts';
import { createTenant, event, QUEUE, START_MS } from './testing/tenant.ts';

const HOUR_MS = 3_600_000;
/** As `createInbox` claims. */
const LEASE_MS = 25_000;

onEachRedis(redis => {
  describe('the lease of an owner', () => {
    async function start() {
      const t = createTenant(redis());
      await t.apply(t.routes({}));
      const config = (await t.ingress.readQueue(t.tenant, QUEUE)) as IngressQueue;
      const ingest = async () => (await t.ingress.ingest(t.tenant, QUEUE, config, [event(randomUUID(), 'k')])).awake;
      await ingest();
      return { t, ingest, first: await t.own('A') };
    }

    test('holds nobody when it ends later than any can: the next owner fences the one before', async () => {
      const { t, first } = await start();
      t.clock.ms -= HOUR_MS;
      const second = await t.own('B');
      expect(second.epoch).toBeGreaterThan(first.epoch);
      expect(await t.queues.next(first, t.nowMs(), 10)).toBe('FENCED');
      expect(await t.queues.own(t.queue, t.nowMs(), 'A')).toMatchObject({ answer: 'HELD' });
    });

    test('keeps no router from being woken: ingest says that nobody is at work', async () => {
      const { t, ingest } = await start();
      expect(await ingest()).toBe(true);
      t.clock.ms -= HOUR_MS;
      expect(await ingest()).toBe(false);
      await t.own('B');
      expect(await ingest()).toBe(true);
    });

    test('holds where another process took it by a clock that is a little ahead', async () => {
      const { t, ingest } = await start();
      t.clock.ms -= 2_000;
      expect(await t.queues.own(t.queue, t.nowMs(), 'B')).toMatchObject({ answer: 'HELD' });
      expect(await ingest()).toBe(true);
    });
  });

  describe('claims', () => {
    test('of a dispatcher that died lapse after one lease, however far the clock was set back', async () => {
      const it = await createInbox(redis());
      await it.publish(['a', 'b']);
      expect(await it.claim()).toHaveLength(2);
      it.t.clock.ms -= HOUR_MS;
      // Whoever has them may be at work still.
      expect(await it.claim()).toEqual([]);
      it.t.clock.ms += LEASE_MS - 1;
      expect(await it.claim()).toEqual([]);
      it.t.clock.ms += 1;
      expect((await it.claim()).map(({ lane, lapses }) => [lane, lapses])).toEqual([
        ['a', 1],
        ['b', 1],
      ]);
    });

    test('that hold the whole cap do so, too', async () => {
      const it = await createInbox(redis(), { sub: { cap: 1 } });
      await it.publish(['a', 'b']);
      expect(await it.claim()).toHaveLength(1);
      it.t.clock.ms -= HOUR_MS;
      expect(await it.claim()).toEqual([]);
      it.t.clock.ms += LEASE_MS;
      expect(await it.claim()).toMatchObject([{ lane: 'a', lapses: 1 }]);
    });

    test('of one that is alive end as usual, and what is behind them is due', async () => {
      const it = await createInbox(redis());
      const refs = await it.publish(['a', 'a']);
      const [claimed] = await it.claim();
      it.t.clock.ms -= HOUR_MS;
      expect(await it.claim()).toEqual([]);
      expect(await it.end(claimed as NonNullable<typeof claimed>)).toBe('OK');
      expect(await it.claim()).toMatchObject([{ ref: refs[1], lapses: 0 }]);
    });

    test('are made at once of what was due by the clock before, and the answer says so', async () => {
      const it = await createInbox(redis());
      await it.publish(['a', 'b']);
      it.t.clock.ms -= HOUR_MS;
      const { nextMs } = await it.t.inboxes.exchange(it.inbox, it.t.nowMs(), [], undefined);
      expect(nextMs).toBe(it.t.nowMs());
      expect(await it.claim()).toEqual([]);
      expect((await it.claim()).map(({ lane }) => lane)).toEqual(['a', 'b']);
    });

    test('of retries wait for their time', async () => {
      const it = await createInbox(redis());
      await it.publish(['a']);
      const [claimed] = await it.claim();
      await it.end(claimed as NonNullable<typeof claimed>, { outcome: 'failed', dueMs: it.t.nowMs() + HOUR_MS });
      expect(await it.claim()).toEqual([]);
      it.t.clock.ms += HOUR_MS;
      expect(await it.claim()).toHaveLength(1);
    });
  });

  describe('hints', () => {
    function start() {
      const hints = createHintIndex(redis(), 'd');
      const member = `int_${randomUUID()}/sub_x.inc`;
      const partition = hintPartition(member);
      onTestFinished(async () => {
        const { due, tokens } = hintKeys('d', partition);
        await redis().call('zrem', due, member);
        await redis().call('hdel', tokens, member, '');
      });
      const pick = async (nowMs: number, token: string) =>
        (await hints.pick(partition, nowMs, 10_000, 10_000, token)).members.includes(member);
      return { hints, member, pick };
    }

    test('of a process that died are picked at once', async () => {
      const { hints, member, pick } = start();
      await hints.lower([{ member, dueMs: START_MS }]);
      expect(await pick(START_MS, 't1')).toBe(true);
      expect(await pick(START_MS - HOUR_MS, 't2')).toBe(true);
      expect(await pick(START_MS - HOUR_MS, 't3')).toBe(false);
      expect(await pick(START_MS - HOUR_MS + 10_000, 't4')).toBe(true);
    });

    test('that became due by the clock before, too', async () => {
      const { hints, member, pick } = start();
      await hints.lower([{ member, dueMs: START_MS }]);
      expect(await pick(START_MS, 't1')).toBe(true);
      expect(await hints.settle(hintPartition(member), member, 't1', START_MS + 250)).toBe(true);
      expect(await pick(START_MS - HOUR_MS, 't2')).toBe(true);
    });

    test('are leased to one at a time where clocks differ a little', async () => {
      const { hints, member, pick } = start();
      await hints.lower([{ member, dueMs: START_MS - 1_000 }]);
      expect(await pick(START_MS, 't1')).toBe(true);
      expect(await pick(START_MS - 1_000, 't2')).toBe(false);
    });
  });
});
