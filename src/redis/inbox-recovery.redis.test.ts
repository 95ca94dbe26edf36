import { describe, expect, test } from 'vitest';
import { isTestRef } from '../core/events/test-event.ts';
import { refMs, refOfStreamId } from '../core/ids/refs.ts';
import { inboxMember } from './inbox-store.ts';
import { BUCKET_MS } from './keys.ts';
import { onEachRedis } from './testing/each-redis.ts';
import { createInbox, type Inbox } from './testing/inbox.ts';
import { createPaidInbox, DEAD, replay } from './testing/replay.ts';
import { type IntegrationShort, START_MS } from './testing/tenant.ts';

const HOUR_MS = 3_600_000;
const LATER = { outcome: 'failed', dueMs: START_MS + HOUR_MS, attempt: '1,500,9' } as const;

onEachRedis(redis => {
  const start = (integration: IntegrationShort = {}) => createInbox(redis(), integration);
  const lanes = async ({ claim }: Inbox) => (await claim()).map(({ lane, ref }) => [lane, ref]);
  const all = { sinceMs: 0 };

  describe('recover', () => {
    test('what waits for a retry is due at once, dead letters are open again, and each lane goes on in order', async () => {
      const inbox = await start();
      const [a, a2, a3, b] = (await inbox.publish(['a', 'a', 'a', 'b'])) as [string, string, string, string];
      const [first] = await inbox.claim(1);
      await inbox.end(first as NonNullable<typeof first>, DEAD);
      for (const claim of await inbox.claim()) await inbox.end(claim, LATER);
      expect(await lanes(inbox)).toEqual([]);
      inbox.lowered.length = 0;
      expect(await inbox.recovery.recover(inbox.inbox, all)).toEqual({ answer: 'OK', recovered: 3, cursor: undefined });
      expect(inbox.lowered).toMatchObject([{ member: inboxMember(inbox.inbox), dueMs: START_MS }]);
      expect(await inbox.count()).toEqual({ routed: 4, dead: 0, open: 4 });
      expect(await inbox.drain()).toEqual([
        ['a', a],
        ['b', b],
        ['a', a2],
        ['a', a3],
      ]);
      expect(await inbox.count()).toEqual({ routed: 4, dead: 0, delivered: 4, open: 0 });
      expect(await inbox.recovery.recover(inbox.inbox, all)).toEqual({ answer: 'OK', recovered: 0, cursor: undefined });
    });

    test('a dead letter has all its retries before it, and its attempts are not forgotten', async () => {
      const inbox = await start();
      const [a] = (await inbox.publish(['a'])) as [string];
      await inbox.drain({ outcome: 'dead', record: `dead ${START_MS + 5} 3 503 12` });
      await inbox.recovery.recover(inbox.inbox, all);
      expect(await inbox.claim()).toMatchObject([{ ref: a, attempts: 0, lapses: 0 }]);
      expect(await inbox.reader.inspect(inbox.inbox, a)).toMatchObject({
        event: { progress: { history: [{ atMs: START_MS + 5, result: '503', latencyMs: 12 }] } },
      });
    });

    test('leaves alone what was accepted before, what arrived, what was skipped, and what is under way', async () => {
      const inbox = await start();
      const [, , c] = (await inbox.publish(['a', 'b', 'c'])) as [string, string, string];
      for (const claim of await inbox.claim()) await inbox.end(claim, claim.lane === 'c' ? {} : DEAD);
      inbox.t.clock.ms += 10;
      const [, b2] = (await inbox.publish(['a', 'b'])) as [string, string];
      await inbox.operations.skip(inbox.inbox, { ref: b2 });
      const [flying] = await inbox.claim();
      expect(await inbox.recovery.recover(inbox.inbox, { sinceMs: START_MS + 10 })).toMatchObject({ recovered: 0 });
      expect(await inbox.end(flying as NonNullable<typeof flying>)).toBe('OK');
      expect(await inbox.reader.inspect(inbox.inbox, c)).toMatchObject({ event: { progress: { state: 'delivered' } } });
      expect(await inbox.count()).toEqual({ routed: 5, dead: 2, delivered: 2, skipped: 1, open: 0 });
    });

    test('behind an attempt that is under way: if that fails, the earlier one goes first, and at once', async () => {
      const inbox = await start();
      const [a, a2] = (await inbox.publish(['a', 'a'])) as [string, string];
      const [first] = await inbox.claim();
      await inbox.end(first as NonNullable<typeof first>, DEAD);
      const [second] = await inbox.claim();
      expect(await inbox.recovery.recover(inbox.inbox, all)).toMatchObject({ recovered: 1 });
      expect(await lanes(inbox)).toEqual([]);
      await inbox.end(second as NonNullable<typeof second>, LATER);
      expect(await inbox.drain()).toEqual([
        ['a', a],
        ['a', a2],
      ]);
    });

    test('behind an attempt that is under way: who skips the earlier one does not have it sent twice', async () => {
      const inbox = await start();
      const [a, a2] = (await inbox.publish(['a', 'a'])) as [string, string];
      const [first] = await inbox.claim();
      await inbox.end(first as NonNullable<typeof first>, DEAD);
      const [second] = await inbox.claim();
      await inbox.recovery.recover(inbox.inbox, all);
      expect(await inbox.operations.skip(inbox.inbox, { ref: a })).toBe('OK');
      expect(await lanes(inbox)).toEqual([]);
      expect(await inbox.end(second as NonNullable<typeof second>)).toBe('OK');
      expect(await inbox.reader.inspect(inbox.inbox, a2)).toMatchObject({
        event: { progress: { state: 'delivered' } },
      });
      expect(await inbox.count()).toEqual({ routed: 2, dead: 0, skipped: 1, delivered: 1, open: 0 });
    });

    test('without order each for itself; a replay that died as well, without another charge', async () => {
      const inbox = await createPaidInbox(redis(), { sub: { unordered: true } });
      const [a] = (await inbox.publish(['a', 'a'])) as [string, string];
      await inbox.drain(DEAD);
      await replay(inbox, a);
      await inbox.drain(DEAD);
      const used = await inbox.usedTokens();
      expect(await inbox.recovery.recover(inbox.inbox, all)).toMatchObject({ recovered: 3 });
      expect((await inbox.drain()).map(([lane]) => lane.split('\0')[0])).toEqual(['a', 'a', 'a\x01rpl_1']);
      expect(await inbox.usedTokens()).toBe(used);
      await inbox.count();
    });

    test('over more events than one call looks at, by its cursor', async () => {
      const inbox = await start();
      for (let n = 0; n < 6; n++) await inbox.publish(Array.from({ length: 50 }, () => 'a'));
      await inbox.drain(DEAD);
      let [calls, recovered] = [0, 0];
      for (let cursor: string | undefined; calls === 0 || cursor !== undefined; calls++) {
        const answer = await inbox.recovery.recover(inbox.inbox, { ...all, cursor });
        if (answer.answer !== 'OK') throw new Error(answer.answer);
        recovered += answer.recovered;
        cursor = answer.cursor;
      }
      expect({ calls, recovered }).toEqual({ calls: 2, recovered: 300 });
      expect(await inbox.recovery.recover(inbox.inbox, { ...all, cursor: 'bm9uZQ' })).toEqual({ answer: 'BAD_CURSOR' });
    });

    test('not while the subscription is covered', async () => {
      const inbox = await start();
      await inbox.say({ sub: { route: 'paused', send: 'held' } });
      expect(await inbox.recovery.recover(inbox.inbox, all)).toEqual({ answer: 'PAUSED' });
    });
  });

  describe('a test event', () => {
    const sendTest = async ({ recovery, inbox }: Inbox): Promise<string> => {
      const answer = await recovery.sendTest(inbox);
      if (answer.answer !== 'OK') throw new Error(answer.answer);
      return answer.ref;
    };

    test('is claimed without any activation, ends as others do, is read by its ref, and is in no list', async () => {
      const inbox = await createInbox(redis(), {}, []);
      const ref = await sendTest(inbox);
      expect(isTestRef(ref)).toBe(true);
      expect(await inbox.reader.inspect(inbox.inbox, ref)).toMatchObject({
        event: { withheld: undefined, meta: { type: 'sluice.test' }, progress: { state: 'pending' } },
      });
      const [claim] = await inbox.claim();
      expect(claim).toMatchObject({ lane: '', ref, attempts: 0 });
      await inbox.end(claim as NonNullable<typeof claim>, DEAD);
      const inspected = await inbox.reader.inspect(inbox.inbox, ref);
      expect(inspected).toMatchObject({
        event: { acceptedMs: refMs(ref), progress: { state: 'dead', reason: '500' } },
      });
      for (const states of [undefined, ['dead'], ['pending']] as const) {
        const options = { ...(states && { states }), limit: 10 };
        expect(await inbox.reader.list(inbox.inbox, options)).toMatchObject({ answer: 'OK', events: [] });
      }
      expect(await inbox.count()).toEqual({ tested: 1, dead: 1, open: 0 });
      expect(await inbox.recovery.recover(inbox.inbox, all)).toMatchObject({ recovered: 0 });
    });

    test('is skipped as others are, also without order', async () => {
      const inbox = await start({ sub: { unordered: true } });
      const [one, two] = [await sendTest(inbox), await sendTest(inbox)];
      expect(one).not.toBe(two);
      expect(await inbox.operations.skip(inbox.inbox, { ref: one })).toBe('OK');
      expect(await inbox.drain()).toEqual([[`\0${two}`, two]]);
      expect(await inbox.count()).toEqual({ tested: 2, skipped: 1, delivered: 1, open: 0 });
    });

    test.each([
      ['GONE', { sub: { route: 'closed', send: 'held' } }],
      ['PAUSED', { sub: { route: 'paused', send: 'held' } }],
      ['HELD', { sub: { send: 'held' } }],
      ['PULLED', { sub: { send: 'held', endpoint: '' } }],
      ['REVOKED', { state: 'closed' }],
    ] as [string, IntegrationShort][])('is refused as %s where nothing may be sent', async (answer, integration) => {
      const inbox = await start(integration);
      expect(await inbox.recovery.sendTest(inbox.inbox)).toEqual({ answer });
      expect(await inbox.count()).toEqual({ open: 0 });
    });

    test('ten may be open; retention ends them as it ends events, however long ago', async () => {
      const inbox = await start();
      for (let n = 0; n < 10; n++) await sendTest(inbox);
      expect(await inbox.recovery.sendTest(inbox.inbox)).toEqual({ answer: 'MANY' });
      inbox.t.clock.ms += 20 * BUCKET_MS;
      const cut = `${inbox.t.clock.ms - 1_000}-0`;
      while ((await inbox.t.inboxes.expire(inbox.inbox, inbox.t.nowMs(), cut)).more);
      expect(await inbox.count()).toEqual({ tested: 10, expired: 10, open: 0 });
      expect(refOfStreamId(cut) > (await sendTest(inbox))).toBe(false);
    });
  });
});
