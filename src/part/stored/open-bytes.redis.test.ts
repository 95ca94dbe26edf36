import { describe, expect, test } from 'vitest';
import { createPartInbox, type EndOfAttempt, type InboxShort } from '../../../test/support/part/part-inbox.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { recordsBucketOf } from '../keys.ts';
import { sweepAll } from '../sweep/testing/sweep-all.ts';

const HOUR_MS = 3_600_000;
const RETENTION_MS = 2 * HOUR_MS;
/** The bytes of an open delivery, and how many bytes of its failed attempts they include. */
const [OPEN_COST, SHORT_FAILED] = [450, 36];
/** The bytes of a reference that was written later, and of its event. */
const LATE_COST = 60 + 45;
const DEAD = { outcome: 'dead', record: 'dead 1 1 http_5xx 9' } as const;

onEachRedis(redis => {
  async function start(short?: InboxShort) {
    const inbox = await createPartInbox(redis(), short);
    const { part, t } = inbox;
    await part.change({ kind: 'meta', field: 'retentionMs', value: String(RETENTION_MS) });
    const bytes = async () => Number((await part.hash('meta')).bytes ?? 0);
    /** The bytes of all events, without their deliveries. */
    const events = async () => (await part.log()).reduce((sum, { cost }) => sum + cost, 0);
    async function pass(ms: number) {
      t.clock.ms += ms;
      await sweepAll(part);
    }
    /** Makes one attempt for everything that is due. */
    async function attempt(change: EndOfAttempt = {}) {
      await inbox.forgive();
      const { claims } = await inbox.d.exchange(256, { roomBytes: 0 });
      for (const claim of claims) {
        const fields = { reason: 'http_5xx', latencyMs: 250, dueMs: t.clock.ms + 10_000 };
        inbox.d.end(claim, change.outcome ?? 'failed', fields);
      }
      await inbox.d.exchange(0, { roomBytes: 0 });
      await inbox.forgive();
      return claims.length;
    }
    async function attemptAll(change: EndOfAttempt = {}) {
      let ended = 0;
      for (let some = -1; some !== 0; ended += some) some = await attempt(change);
      t.clock.ms += 10_001;
      return ended;
    }
    return { ...inbox, bytes, events, pass, attemptAll };
  }

  describe('an open delivery counts until it ends', () => {
    test.each(['delivered', 'dead', 'skipped', 'expired', 'deleted'])('%s', async how => {
      const inbox = await start();
      const { publish, bytes, events, pass, part, slot } = inbox;
      const [ref] = (await publish(['a', 'b'])) as [string];
      const stored = await events();
      expect(await bytes()).toBe(stored + 2 * OPEN_COST);
      if (how === 'delivered') await inbox.drain();
      if (how === 'dead') await inbox.drain(DEAD);
      if (how === 'skipped') await inbox.operations.skip(inbox.inbox, { ref });
      if (how === 'deleted') {
        await part.change({ kind: 'drop', slot, how: 'delete' });
        await pass(0);
      }
      if (how === 'delivered' || how === 'deleted') expect(await bytes()).toBe(stored);
      if (how === 'skipped') expect(await bytes()).toBeLessThan(stored + 2 * OPEN_COST);
      await pass(RETENTION_MS + 1);
      await pass(2 * RETENTION_MS + 12 * HOUR_MS);
      expect(await bytes()).toBe(0);
    });

    test('acknowledged', async () => {
      const { publish, bytes, events, operations, inbox } = await start({ sub: { endpoint: '' } });
      const [ref] = (await publish(['a'])) as [string];
      expect(await bytes()).toBe((await events()) + OPEN_COST);
      await operations.acknowledge(inbox, [{ ref }]);
      expect(await bytes()).toBe(await events());
    });

    test('also if it was routed later', async () => {
      const { publish, bytes, events, part, say, drain } = await start();
      await say({ sub: { route: 'paused' } });
      await publish(['a', 'b']);
      expect(await bytes()).toBe(await events());
      await say({ sub: { route: 'open' } });
      await part.advanceAll();
      expect(await bytes()).toBe((await events()) + 2 * (OPEN_COST + LATE_COST));
      await drain();
      expect(await bytes()).toBe((await events()) + 2 * LATE_COST);
    });

    test('also if its claim lapses, or is ended by its owner during the attempt', async () => {
      const { publish, bytes, events, claim, end, lapse, operations, inbox } = await start();
      const [one, two] = (await publish(['a', 'b'])) as [string, string];
      await claim();
      await lapse();
      expect(await bytes()).toBe((await events()) + 2 * OPEN_COST);
      const claims = await claim();
      await operations.skip(inbox, { ref: one });
      const skipped = await bytes();
      const claimOf = (ref: string) => claims.find(each => each.ref === ref) as (typeof claims)[number];
      await end(claimOf(one));
      // The record contains the attempt as well, but the delivery is not open any more.
      const listed = await bytes();
      expect(listed - skipped).toBeGreaterThan(0);
      expect(listed - skipped).toBeLessThan(OPEN_COST / 10);
      await end(claimOf(two));
      expect(await bytes()).toBe(listed - OPEN_COST);
    });

    test('with the text of its failed attempts', async () => {
      const { publish, bytes, events, part, attemptAll } = await start();
      await publish(['a', 'b']);
      for (let attempt = 1; attempt <= 9; attempt++) {
        await attemptAll();
        let expected = await events();
        for (const text of Object.values(await part.hash('tries'))) {
          const failed = text.slice(text.indexOf(','));
          expect(failed.split(',').length - 1).toBe(attempt);
          expected += OPEN_COST + Math.ceil((4 / 3) * Math.max(0, failed.length - SHORT_FAILED));
        }
        expect(await bytes()).toBe(expected);
      }
      await attemptAll({ outcome: 'delivered' });
      expect(await bytes()).toBe(await events());
    });

    test('and a dead letter that is recovered counts again', async () => {
      const { publish, bytes, events, drain, recovery, inbox } = await start();
      await publish(['a', 'b']);
      await drain(DEAD);
      await recovery.recover(inbox, { sinceMs: 0 });
      expect(await bytes()).toBe((await events()) + 2 * OPEN_COST);
      await drain();
      expect(await bytes()).toBe(await events());
    });
  });

  describe('replays and test events', () => {
    test('do not count towards the quota of the producer, whatever happens to them', async () => {
      const { publish, bytes, drain, replays, payer, recovery, operations, inbox, pass, setAccount } = await start();
      await setAccount('Metered', 0);
      const [ref] = (await publish(['a'])) as [string];
      await drain();
      const before = await bytes();
      for (let i = 0; i < 3; i++) {
        await replays.start(payer, `rpl_${i}`, inbox, { ref });
        expect(await bytes()).toBe(before);
        if (i === 0) await drain(DEAD);
        else await operations.skip(inbox, { ref, replayId: `rpl_${i}` });
        const test = await recovery.sendTest(inbox);
        expect(await bytes()).toBe(before);
        if (i === 0) await drain(DEAD);
        else if (test.answer === 'OK') await operations.skip(inbox, { ref: test.ref });
        expect(await bytes()).toBe(before);
      }
      await replays.start(payer, 'rpl_open', inbox, { ref });
      await recovery.sendTest(inbox);
      await pass(RETENTION_MS + 1);
      await pass(2 * RETENTION_MS + 12 * HOUR_MS);
      expect(await bytes()).toBe(0);
    });

    test('are only listed up to 64 KiB for each six hours', async () => {
      const { publish, bytes, recovery, operations, inbox, part, t, slot } = await start();
      const records = part.keys.records(recordsBucketOf(t.clock.ms));
      let listed = 0;
      for (let i = 0; i < 300; i++) {
        t.clock.ms++;
        const test = await recovery.sendTest(inbox);
        if (test.answer !== 'OK') throw new Error(test.answer);
        expect(await operations.skip(inbox, { ref: test.ref })).toBe('OK');
        const { length } = await part.members('final');
        if (length > listed) listed = length;
      }
      expect(listed).toBeGreaterThan(200);
      expect(listed).toBeLessThan(300);
      expect(Number(await redis().call('hget', records, slot))).toBeLessThanOrEqual(65_536);
      expect(Number(await redis().call('memory', 'usage', records, 'SAMPLES', '0'))).toBeLessThan(65_536);
      expect(await bytes()).toBe(0);
      const [ref] = (await publish(['a'])) as [string];
      expect(await operations.skip(inbox, { ref })).toBe('OK');
      expect((await part.members('final')).length).toBe(listed + 1);
    });
  });
});
