import { describe, expect, test } from 'vitest';
import { createPartInbox, type InboxShort, NOT_PUSHED, type PartInbox } from '../../../test/support/part/part-inbox.ts';
import { isTestRef } from '../../core/events/test-event.ts';
import { refMs } from '../../core/ids/refs.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import type { Claim } from '../claims/message.ts';
import { partRefOf } from '../inbox/ref-names.ts';
import { createSweep } from '../sweep/sweep.ts';
import { sweepAll } from '../sweep/testing/sweep-all.ts';

const DEAD = { outcome: 'dead', record: 'dead 1 1 500 9' } as const;
const HOUR_MS = 3_600_000;

onEachRedis(redis => {
  const start = (short: InboxShort = {}) => createPartInbox(redis(), short);
  const lanes = async ({ claim }: PartInbox) => (await claim()).map(({ lane, ref }) => [lane, ref]);
  const later = ({ t }: PartInbox) => ({ outcome: 'failed', dueMs: t.nowMs() + HOUR_MS, attempt: '1,500,9' }) as const;
  const all = { sinceMs: 0 };

  describe('recover', () => {
    test('makes waiting retries due, opens dead letters again, and keeps the order', async () => {
      const inbox = await start();
      const [a, a2, a3, b] = (await inbox.publish(['a', 'a', 'a', 'b'])) as [string, string, string, string];
      const [first] = await inbox.claim(1);
      await inbox.end(first as NonNullable<typeof first>, DEAD);
      for (const claim of await inbox.claim()) await inbox.end(claim, later(inbox));
      expect(await lanes(inbox)).toEqual([]);
      expect(await inbox.recovery.recover(inbox.inbox, all)).toEqual({
        answer: 'OK',
        recovered: 3,
        replayRequired: 0,
        cursor: undefined,
      });
      expect(await inbox.count()).toEqual({ routed: 4, open: 4 });
      const ended = await inbox.drain();
      const ofLane = (lane: string) => ended.filter(([each]) => each === lane).map(([, ref]) => ref);
      expect([ofLane('a'), ofLane('b')]).toEqual([[a, a2, a3], [b]]);
      expect(await inbox.count()).toEqual({ routed: 4, delivered: 4, open: 0 });
      expect(await inbox.recovery.recover(inbox.inbox, all)).toEqual({
        answer: 'OK',
        recovered: 0,
        replayRequired: 0,
        cursor: undefined,
      });
    });

    test('does not affect a later retry of the lane, even if its dispatcher crashes after the event was skipped', async () => {
      const inbox = await start();
      const [a, a2] = (await inbox.publish(['a', 'a'])) as [string, string];
      const [first] = (await inbox.claim(1)) as [Claim];
      await inbox.end(first, DEAD);
      const [second] = (await inbox.claim()) as [Claim];
      await inbox.recovery.recover(inbox.inbox, all);
      await inbox.end(second, later(inbox));
      expect(await inbox.claim()).toMatchObject([{ ref: a }]);
      await inbox.operations.skip(inbox.inbox, { ref: a });
      await inbox.lapse();
      expect(await inbox.claim()).toEqual([]);
      inbox.t.clock.ms += HOUR_MS;
      expect(await inbox.claim()).toMatchObject([{ ref: a2, attempts: 1 }]);
    });

    test.each<[how: string, remove: (inbox: PartInbox, ref: string) => Promise<unknown>]>([
      ['skipped', ({ operations, inbox }, ref) => operations.skip(inbox, { ref })],
      [
        'skipped while its group key is inactive',
        async ({ t, claim, operations, inbox }, ref) => {
          await t.deactivate('', 'a');
          expect(await claim()).toEqual([]);
          await operations.skip(inbox, { ref });
          await t.activate('', 'a');
        },
      ],
      [
        'delivered by a dispatcher that was stalled',
        async ({ claim, lapse, end }) => {
          const [first] = (await claim()) as [Claim];
          await lapse();
          expect(await end(first)).toBe('done');
        },
      ],
      [
        'removed by retention',
        async ({ t, part }) => {
          t.clock.ms += HOUR_MS / 2 + 1;
          expect(await sweepAll(part)).toMatchObject({ events: 1, expired: 1 });
        },
      ],
    ])('does not make a later retry of the lane due if the event is %s', async (_how, remove) => {
      const inbox = await start();
      const { part, t } = inbox;
      await part.change({ kind: 'meta', field: 'retentionMs', value: String(1.5 * HOUR_MS) });
      const [a] = (await inbox.publish(['a'])) as [string];
      t.clock.ms += HOUR_MS;
      const [a2] = (await inbox.publish(['a'])) as [string];
      const [first] = (await inbox.claim(1)) as [Claim];
      await inbox.end(first, DEAD);
      const [second] = (await inbox.claim()) as [Claim];
      await inbox.recovery.recover(inbox.inbox, all);
      await inbox.end(second, later(inbox));
      await remove(inbox, a);
      expect(await inbox.claim()).toEqual([]);
      t.clock.ms += HOUR_MS;
      expect(await inbox.claim()).toMatchObject([{ ref: a2, attempts: 1 }]);
    });

    test('ignores events that a sweep is removing', async () => {
      const inbox = await start();
      const { part, t } = inbox;
      await part.change({ kind: 'meta', field: 'retentionMs', value: String(HOUR_MS) });
      await inbox.publish(['a']);
      await inbox.drain(DEAD);
      for (let batch = 0; batch < 3; batch++) await inbox.publish(Array<string>(50).fill('b'));
      t.clock.ms += HOUR_MS + 1;
      // This ends a hundred of the open events. The first events come after them.
      expect(await createSweep(part.client)(part.part, {})).toMatchObject({ events: 0, expired: 100 });
      expect(await inbox.recovery.recover(inbox.inbox, all)).toMatchObject({ recovered: 0 });
      await sweepAll(part);
      expect(await inbox.count()).toEqual({ routed: 151, dead: 1, expired: 150, open: 0 });
    });

    test('gives a dead letter all of its retries, and keeps its previous attempts', async () => {
      const inbox = await start();
      const [a] = (await inbox.publish(['a'])) as [string];
      inbox.t.clock.ms += 5;
      await inbox.drain({ outcome: 'dead', record: 'dead 1 3 503 12' });
      await inbox.recovery.recover(inbox.inbox, all);
      expect(await inbox.claim()).toMatchObject([{ ref: a, attempts: 0, lapses: 0 }]);
      expect(await inbox.reader.inspect(inbox.inbox, a)).toMatchObject({
        event: { progress: { state: 'inflight', history: [{ atMs: refMs(a) + 5, result: '503', latencyMs: 12 }] } },
      });
      expect(await inbox.part.members('final')).toEqual([]);
    });

    test('continues to count the attempts of a dead letter', async () => {
      const inbox = await start();
      const [ref] = (await inbox.publish(['a'])) as [string];
      const responseBody = Buffer.from('no');
      const failOnce = async (end: Parameters<typeof inbox.end>[1]) => {
        const [claim] = (await inbox.claim()) as [Claim];
        await inbox.end(claim, { ...end, responseBody });
        await inbox.forgive();
        inbox.t.clock.ms += HOUR_MS;
      };
      const shown = async () => {
        const found = await inbox.reader.inspect(inbox.inbox, ref);
        if (found.answer !== 'OK') throw new Error(found.answer);
        const { progress, responses } = found.event;
        return [progress.state, progress.attempts, progress.history.length, responses.map(({ attempt }) => attempt)];
      };
      await failOnce(later(inbox));
      await failOnce(DEAD);
      expect(await shown()).toEqual(['dead', 2, 2, [1, 2]]);
      await inbox.recovery.recover(inbox.inbox, all);
      expect(await shown()).toEqual(['pending', 2, 2, [1, 2]]);
      await failOnce(later(inbox));
      expect(await shown()).toEqual(['retrying', 3, 3, [1, 2, 3]]);
      await failOnce(DEAD);
      expect(await shown()).toEqual(['dead', 4, 4, [1, 2, 3, 4]]);
      expect(await inbox.recovery.recover(inbox.inbox, all)).toMatchObject({ recovered: 0, replayRequired: 1 });
    });

    test('opens a dead letter once, and requires a replay afterwards', async () => {
      const inbox = await start();
      await inbox.setAccount('Metered', 0);
      const [a, b] = (await inbox.publish(['a', 'b'])) as [string, string];
      await inbox.drain({ outcome: 'dead', record: 'dead 1 1 503 12' });
      expect(await inbox.recovery.recover(inbox.inbox, all)).toMatchObject({ recovered: 2, replayRequired: 0 });
      // Neither a retry, nor a lapsed claim, nor a release makes it a new dead letter.
      const [first, second] = (await inbox.claim()) as [Claim, Claim];
      await inbox.end(first, later(inbox));
      await inbox.end(second, { outcome: 'released' });
      expect(await inbox.recovery.recover(inbox.inbox, all)).toMatchObject({ recovered: 1, replayRequired: 0 });
      await inbox.claim();
      await inbox.lapse();
      await inbox.drain(DEAD);
      for (let n = 0; n < 2; n++) {
        const again = { answer: 'OK', recovered: 0, replayRequired: 2, cursor: undefined };
        expect(await inbox.recovery.recover(inbox.inbox, all)).toEqual(again);
      }
      expect(await inbox.count()).toEqual({ routed: 2, dead: 2, open: 0 });
      expect(await inbox.reader.inspect(inbox.inbox, a)).toMatchObject({
        event: { progress: { state: 'dead', reason: '500', recovered: true, history: [{}, {}, {}] } },
      });
      expect(await inbox.usedTokens()).toBe(0);
      const range = { fromMs: 1, toMs: inbox.t.nowMs() + 1, states: ['dead'] as const };
      expect(await inbox.replays.start(inbox.payer, 'r', inbox.inbox, range)).toMatchObject({ taken: 2, tokens: 2 });
      expect((await inbox.drain()).map(([, ref]) => ref).toSorted()).toEqual([a, b].toSorted());
    });

    test('opens a dead letter once, regardless of the number of failed attempts', async () => {
      const inbox = await start();
      await inbox.publish(['a']);
      await inbox.drain(DEAD);
      await inbox.recovery.recover(inbox.inbox, all);
      for (let n = 0; n < 22; n++) {
        const [claim] = (await inbox.claim()) as [Claim];
        await inbox.end(claim, { outcome: 'failed', dueMs: inbox.t.nowMs(), attempt: '1,500,9' });
        await inbox.forgive();
      }
      await inbox.drain(DEAD);
      expect(await inbox.recovery.recover(inbox.inbox, all)).toMatchObject({ recovered: 0, replayRequired: 1 });
    });

    test('never opens a dead replay, but makes its waiting retry due', async () => {
      const inbox = await start();
      await inbox.setAccount('Metered', 0);
      const [ref] = (await inbox.publish(['a'])) as [string];
      await inbox.drain();
      await inbox.replays.start(inbox.payer, 'r', inbox.inbox, { ref });
      const [claim] = (await inbox.claim()) as [Claim];
      await inbox.end(claim, later(inbox));
      expect(await inbox.recovery.recover(inbox.inbox, all)).toMatchObject({ recovered: 1, replayRequired: 0 });
      expect(await inbox.drain(DEAD)).toEqual([['a\x01r', ref]]);
      expect(await inbox.recovery.recover(inbox.inbox, all)).toMatchObject({ recovered: 0, replayRequired: 1 });
      expect(await inbox.drain()).toEqual([]);
      const again = await inbox.replays.start(inbox.payer, 's', inbox.inbox, { ref });
      expect(again).toMatchObject({ answer: 'OK', taken: 1, tokens: 1 });
      expect(await inbox.usedTokens()).toBe(2);
    });

    test('does not count an expired dead letter, which cannot be delivered again', async () => {
      const inbox = await start();
      await inbox.publish(['a']);
      await inbox.drain(DEAD);
      await inbox.recovery.recover(inbox.inbox, all);
      await inbox.drain(DEAD);
      await redis().call('xtrim', inbox.t.keys.log, 'maxlen', 0);
      expect(await inbox.recovery.recover(inbox.inbox, all)).toMatchObject({ recovered: 0, replayRequired: 0 });
    });

    test('ignores older, delivered, and skipped events, and attempts in progress', async () => {
      const inbox = await start();
      const sinceMs = inbox.t.nowMs() + 10;
      const [, , c] = (await inbox.publish(['a', 'b', 'c'])) as [string, string, string];
      for (const claim of await inbox.claim()) await inbox.end(claim, claim.lane === 'c' ? {} : DEAD);
      inbox.t.clock.ms += 10;
      const [, b2] = (await inbox.publish(['a', 'b'])) as [string, string];
      await inbox.operations.skip(inbox.inbox, { ref: b2 });
      const [flying] = await inbox.claim();
      expect(await inbox.recovery.recover(inbox.inbox, { sinceMs })).toMatchObject({ recovered: 0 });
      expect(await inbox.end(flying as NonNullable<typeof flying>)).toBe('done');
      expect(await inbox.reader.inspect(inbox.inbox, c)).toMatchObject({ event: { progress: { state: 'delivered' } } });
      expect(await inbox.count()).toEqual({ routed: 5, dead: 2, delivered: 2, skipped: 1, open: 0 });
    });

    test('during an attempt sends the earlier event first if it fails', async () => {
      const inbox = await start();
      const [a, a2] = (await inbox.publish(['a', 'a'])) as [string, string];
      const [first] = await inbox.claim();
      await inbox.end(first as NonNullable<typeof first>, DEAD);
      const [second] = await inbox.claim();
      expect(await inbox.recovery.recover(inbox.inbox, all)).toMatchObject({ recovered: 1 });
      expect(await lanes(inbox)).toEqual([]);
      await inbox.end(second as NonNullable<typeof second>, later(inbox));
      expect(await lanes(inbox)).toEqual([['a', a]]);
      await inbox.end({ lane: 'a', ref: a });
      inbox.t.clock.ms += HOUR_MS;
      expect(await lanes(inbox)).toEqual([['a', a2]]);
    });

    test('of a group key that was deactivated in the meantime waits for its activation', async () => {
      const inbox = await start();
      const [a] = (await inbox.publish(['a', 'b'])) as [string];
      await inbox.drain(DEAD);
      await inbox.t.deactivate('x', 'a');
      expect(await inbox.recovery.recover(inbox.inbox, all)).toMatchObject({ recovered: 2 });
      expect((await inbox.drain()).map(([lane]) => lane)).toEqual(['b']);
      await inbox.t.activate('x', 'a');
      expect(await inbox.drain()).toEqual([['a', a]]);
    });

    test('without order, each event is separate', async () => {
      const inbox = await start({ sub: { unordered: true } });
      await inbox.publish(['a', 'a']);
      await inbox.drain(DEAD);
      expect(await inbox.recovery.recover(inbox.inbox, all)).toMatchObject({ recovered: 2 });
      expect((await inbox.drain()).map(([lane]) => lane.split('\0')[0])).toEqual(['a', 'a']);
      expect(await inbox.count()).toEqual({ routed: 2, delivered: 2, open: 0 });
    });

    test('for more events than a call reads, continues using its cursor', async () => {
      const inbox = await start({ sub: { unordered: true } });
      for (let n = 0; n < 5; n++) await inbox.publish(Array.from({ length: 50 }, () => 'a'));
      await inbox.drain(DEAD);
      let [calls, recovered] = [0, 0];
      for (let cursor: string | undefined; calls === 0 || cursor !== undefined; calls++) {
        const answer = await inbox.recovery.recover(inbox.inbox, { ...all, cursor });
        if (answer.answer !== 'OK') throw new Error(answer.answer);
        recovered += answer.recovered;
        cursor = answer.cursor;
      }
      expect({ calls, recovered }).toEqual({ calls: 2, recovered: 250 });
      expect(await inbox.recovery.recover(inbox.inbox, { ...all, cursor: 'bm9uZQ' })).toEqual({ answer: 'BAD_CURSOR' });
    });

    test('stops early if it may not continue, and resumes using its cursor', async () => {
      const inbox = await start({ sub: { unordered: true } });
      await inbox.publish(Array.from({ length: 25 }, () => 'a'));
      await inbox.drain(DEAD);
      let asked = 0;
      const first = await inbox.recovery.recover(inbox.inbox, { ...all, mayGoOn: () => ++asked < 2 });
      if (first.answer !== 'OK') throw new Error(first.answer);
      expect([first.recovered, asked]).toEqual([20, 2]);
      const { cursor } = first;
      const rest = await inbox.recovery.recover(inbox.inbox, { ...all, cursor });
      expect(rest).toMatchObject({ recovered: 5, cursor: undefined });
    });

    test('removes the record of its own subscription from full chunks', async () => {
      const inbox = await start();
      const others = Array.from({ length: 150 }, (_, n) => `other${n}`);
      for (const other of others) await inbox.part.setRow(other, {});
      for (const other of others) await inbox.part.activate(other, 'a');
      const [ref] = (await inbox.publish(['a'])) as [string];
      // The first dead letter is in a full chunk.
      const claims: Claim[] = [];
      while (claims.length <= others.length) claims.push(...(await inbox.d.exchange(64, NOT_PUSHED)).claims);
      for (const claim of claims.filter(({ slot }) => slot === inbox.slot)) inbox.d.end(claim, 'dead');
      await inbox.d.exchange(0, NOT_PUSHED);
      for (const claim of claims.filter(({ slot }) => slot !== inbox.slot)) inbox.d.end(claim);
      await inbox.d.exchange(0, NOT_PUSHED);
      const before = await inbox.part.records(partRefOf(ref) as string);
      expect(before[0]?.slot).toBe(inbox.slot);
      expect(await inbox.recovery.recover(inbox.inbox, all)).toMatchObject({ recovered: 1 });
      expect(await inbox.part.records(partRefOf(ref) as string)).toEqual(before.slice(1));
    });

    test('is not possible while the subscription is blocked', async () => {
      const inbox = await start();
      await inbox.say({ sub: { route: 'paused', send: 'held' } });
      expect(await inbox.recovery.recover(inbox.inbox, all)).toEqual({ answer: 'PAUSED' });
    });
  });

  describe('a test event', () => {
    const sendTest = async ({ recovery, inbox }: PartInbox): Promise<string> => {
      const answer = await recovery.sendTest(inbox);
      if (answer.answer !== 'OK') throw new Error(answer.answer);
      return answer.ref;
    };

    test('is claimed without an activation, ends like other events, is read by its ref, and is not listed', async () => {
      const inbox = await createPartInbox(redis(), {}, []);
      const ref = await sendTest(inbox);
      expect(isTestRef(ref)).toBe(true);
      expect(await inbox.reader.inspect(inbox.inbox, ref)).toMatchObject({
        event: { withheld: undefined, meta: { type: 'sluice.test' }, progress: { state: 'pending' } },
      });
      const [claim] = await inbox.claim();
      expect(claim).toMatchObject({ lane: '', ref, attempts: 0 });
      await inbox.end(claim as NonNullable<typeof claim>, DEAD);
      expect(await inbox.reader.inspect(inbox.inbox, ref)).toMatchObject({
        event: { acceptedMs: refMs(ref), progress: { state: 'dead', reason: '500' } },
      });
      for (const states of [undefined, ['dead'], ['pending']] as const) {
        const options = { ...(states && { states }), limit: 10 };
        expect(await inbox.reader.list(inbox.inbox, options)).toMatchObject({ answer: 'OK', events: [] });
      }
      expect(await inbox.count()).toEqual({ open: 0 });
      expect(await inbox.recovery.recover(inbox.inbox, all)).toMatchObject({ recovered: 0 });
    });

    test('is sent once for a call, even if it has ended or nothing can be sent anymore', async () => {
      const inbox = await createPartInbox(redis(), {}, []);
      const send = (once?: string) => inbox.recovery.sendTest(inbox.inbox, once);
      const first = await send('call');
      inbox.t.clock.ms += 5;
      expect(await send('call')).toEqual(first);
      expect(await inbox.drain()).toHaveLength(1);
      await inbox.say({ sub: { route: 'paused', send: 'held' } });
      expect(await send('call')).toEqual(first);
      expect(await send('another')).toEqual({ answer: 'PAUSED' });
      const key = inbox.part.keys.chunks(inbox.slot, 'test.call');
      expect(Number(await redis().call('pttl', key))).toBeGreaterThan(23 * HOUR_MS);
      await inbox.say({});
      expect(await send('another')).not.toEqual(first);
      expect(await inbox.drain()).toHaveLength(1);
    });

    test('is skipped like other events, even without order', async () => {
      const inbox = await start({ sub: { unordered: true } });
      const [one, two] = [await sendTest(inbox), await sendTest(inbox)];
      expect(one).not.toBe(two);
      expect(await inbox.operations.skip(inbox.inbox, { ref: one })).toBe('OK');
      expect((await inbox.drain()).map(([, ref]) => ref)).toEqual([two]);
    });

    test.each([
      ['GONE', { route: 'closed', send: 'held' }],
      ['PAUSED', { route: 'paused', send: 'held' }],
      ['HELD', { send: 'held' }],
      ['PULLED', { send: 'held', endpoint: '' }],
    ] as const)('is refused as %s if nothing can be sent', async (answer, sub) => {
      const inbox = await start({ sub });
      expect(await inbox.recovery.sendTest(inbox.inbox)).toEqual({ answer });
      expect(await inbox.part.members('pending')).toEqual([]);
    });

    test('is refused as soon as the endpoint is disabled, before its row is held', async () => {
      const inbox = await start();
      await inbox.publish(['a', 'b']);
      const [gone] = await inbox.claim();
      await inbox.end(gone as NonNullable<typeof gone>, { ...later(inbox), outcome: 'gone' });
      expect(await inbox.recovery.sendTest(inbox.inbox)).toEqual({ answer: 'HELD' });
    });

    test('is limited to ten open ones', async () => {
      const inbox = await start();
      for (let n = 0; n < 10; n++) await sendTest(inbox);
      expect(await inbox.recovery.sendTest(inbox.inbox)).toEqual({ answer: 'MANY' });
      expect(await inbox.drain()).toHaveLength(10);
      expect(await inbox.recovery.sendTest(inbox.inbox)).toMatchObject({ answer: 'OK' });
    });

    test('is limited to ten, even with attempts in progress and without order', async () => {
      const inbox = await start({ sub: { unordered: true } });
      await inbox.publish(Array.from({ length: 12 }, () => 'a'));
      expect(await inbox.claim()).toHaveLength(12);
      for (let n = 0; n < 10; n++) await sendTest(inbox);
      const claims = await inbox.claim();
      expect(claims).toHaveLength(10);
      expect(await inbox.recovery.sendTest(inbox.inbox)).toEqual({ answer: 'MANY' });
      await inbox.end(claims[0] as (typeof claims)[0]);
      expect(await inbox.recovery.sendTest(inbox.inbox)).toMatchObject({ answer: 'OK' });
      expect(await inbox.recovery.sendTest(inbox.inbox)).toEqual({ answer: 'MANY' });
    });
  });
});
