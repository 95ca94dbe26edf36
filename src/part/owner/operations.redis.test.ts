import { describe, expect, test } from 'vitest';
import { expectEmpty } from '../../../test/support/part/part.ts';
import { createPartInbox, type InboxShort, type PartInbox } from '../../../test/support/part/part-inbox.ts';
import { refOfStreamId } from '../../core/ids/refs.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';

const PULL: InboxShort = { sub: { send: 'held', endpoint: '' } };
const LAST = 'z'.repeat(15);

onEachRedis(redis => {
  const start = (short: InboxShort = {}) => createPartInbox(redis(), short);
  const lanes = async ({ claim }: PartInbox) => (await claim()).map(({ lane, ref }) => [lane, ref]);
  const states = async ({ reader, inbox }: PartInbox) => {
    const page = await reader.list(inbox, { limit: 250 });
    return page.answer === 'OK' ? page.events.map(({ progress }) => progress.state) : page.answer;
  };
  async function failAll(inbox: PartInbox, dueMs = inbox.t.nowMs() + 60_000) {
    for (const claim of await inbox.claim()) await inbox.end(claim, { outcome: 'failed', dueMs });
  }

  describe('skip', () => {
    test('ends an open event once, and continues its lane', async () => {
      const inbox = await start();
      const [a, a2] = (await inbox.publish(['a', 'a'])) as [string, string];
      expect(await inbox.operations.skip(inbox.inbox, { ref: a })).toBe('OK');
      expect(await inbox.count()).toEqual({ routed: 2, skipped: 1, open: 1 });
      expect(await lanes(inbox)).toEqual([['a', a2]]);
      expect(await inbox.operations.skip(inbox.inbox, { ref: a })).toBe('skipped');
      expect(await inbox.count()).toEqual({ routed: 2, skipped: 1, open: 1 });
      expect(await states(inbox)).toEqual(['skipped', 'inflight']);
    });

    test('of the first event of a lane continues it immediately', async () => {
      const inbox = await start();
      const [a, a2] = (await inbox.publish(['a', 'a'])) as [string, string];
      await failAll(inbox);
      expect(await lanes(inbox)).toEqual([]);
      await inbox.operations.skip(inbox.inbox, { ref: a });
      expect(await lanes(inbox)).toEqual([['a', a2]]);
    });

    test('of a later event does not send a waiting retry early', async () => {
      const inbox = await start();
      const [a, a2] = (await inbox.publish(['a', 'a'])) as [string, string];
      await failAll(inbox);
      expect(await inbox.operations.skip(inbox.inbox, { ref: a2 })).toBe('OK');
      expect(await lanes(inbox)).toEqual([]);
      inbox.t.clock.ms += 60_000;
      expect(await lanes(inbox)).toEqual([['a', a]]);
    });

    test.each(['delivered', 'failed', 'dead', 'released'] as const)(
      'during an attempt takes precedence, and nothing else is sent during the attempt, which ends as %s',
      async outcome => {
        const inbox = await start();
        const [a, a2] = (await inbox.publish(['a', 'a'])) as [string, string];
        const [claim] = await inbox.claim();
        expect(await inbox.operations.skip(inbox.inbox, { ref: a })).toBe('OK');
        expect(await states(inbox)).toEqual(['skipped', 'pending']);
        expect(await lanes(inbox)).toEqual([]);
        expect(await inbox.end(claim as NonNullable<typeof claim>, { outcome })).toBe('ended');
        expect(await inbox.count()).toEqual({ routed: 2, skipped: 1, open: 1 });
        expect(await lanes(inbox)).toEqual([['a', a2]]);
        await inbox.drain();
        expect(await states(inbox)).toEqual(['skipped', 'inflight']);
      },
    );

    test('during an attempt continues the lane if the dispatcher crashes', async () => {
      const inbox = await start();
      const [a, a2, b] = (await inbox.publish(['a', 'a', 'b'])) as [string, string, string];
      await inbox.claim();
      await inbox.operations.skip(inbox.inbox, { ref: a });
      await inbox.operations.skip(inbox.inbox, { ref: b });
      await inbox.lapse();
      expect(await inbox.count()).toEqual({ routed: 3, skipped: 2, open: 1 });
      expect(await inbox.drain()).toEqual([['a', a2]]);
      await expectEmpty(redis(), inbox.part);
    });

    test('during an attempt does not send a waiting retry early if the dispatcher crashes', async () => {
      const inbox = await start();
      const [a, a2] = (await inbox.publish(['a', 'a'])) as [string, string];
      const [first] = await inbox.claim();
      await inbox.end(first as NonNullable<typeof first>, { outcome: 'dead' });
      const dueMs = inbox.t.nowMs() + 60_000;
      const [second] = await inbox.claim();
      await inbox.end(second as NonNullable<typeof second>, { outcome: 'failed', dueMs });
      const deadOnly = { sinceMs: 1, mayGoOn: () => false };
      expect(await inbox.recovery.recover(inbox.inbox, deadOnly)).toMatchObject({ recovered: 1 });
      expect(await lanes(inbox)).toEqual([['a', a]]);
      await inbox.operations.skip(inbox.inbox, { ref: a });
      await inbox.lapse();
      expect(await lanes(inbox)).toEqual([]);
      inbox.t.clock.ms = dueMs;
      expect(await lanes(inbox)).toEqual([['a', a2]]);
    });

    test('returns another result of the event, or UNKNOWN', async () => {
      const inbox = await start();
      const [a, b] = (await inbox.publish(['a', 'b'])) as [string, string];
      const [first, second] = await inbox.claim();
      await inbox.end(first as NonNullable<typeof first>);
      await inbox.end(second as NonNullable<typeof second>, { outcome: 'dead', record: 'dead 1 1 500 3' });
      expect(await inbox.operations.skip(inbox.inbox, { ref: a })).toBe('delivered');
      expect(await inbox.operations.skip(inbox.inbox, { ref: b })).toBe('dead');
      const unknown = refOfStreamId(`${inbox.t.nowMs()}-999`);
      expect(await inbox.operations.skip(inbox.inbox, { ref: unknown })).toBe('UNKNOWN');
      expect(await inbox.operations.skip(inbox.inbox, { ref: 'no ref' })).toBe('UNKNOWN');
      expect(await inbox.operations.skip({ ...inbox.inbox, inc: 'other' }, { ref: a })).toBe('GONE');
    });

    test('does not affect other subscriptions, or other events without order', async () => {
      const inbox = await start({ sub: { unordered: true } });
      await inbox.part.setRow('other', {});
      await inbox.part.activate('other', 'a');
      const [a, a2] = (await inbox.publish(['a', 'a'])) as [string, string];
      await inbox.operations.skip(inbox.inbox, { ref: a });
      const { claims } = await inbox.d.exchange();
      expect(claims.filter(({ slot }) => slot === inbox.slot)).toHaveLength(1);
      expect(claims.filter(({ slot }) => slot !== inbox.slot)).toHaveLength(1);
      expect(await states(inbox)).toEqual(['skipped', 'inflight']);
      expect(await inbox.operations.skip(inbox.inbox, { ref: a2 })).toBe('OK');
      expect(await inbox.part.counts('other')).toEqual([1, 2, 0, 0, 0, 0]);
    });

    test('does not send anything if the activation was removed', async () => {
      const inbox = await start();
      const [a] = (await inbox.publish(['a', 'a'])) as [string];
      await inbox.t.deactivate('x', 'a');
      expect(await inbox.operations.skip(inbox.inbox, { ref: a })).toBe('OK');
      expect(await lanes(inbox)).toEqual([]);
      await inbox.t.activate('x', 'a');
      expect(await lanes(inbox)).toHaveLength(1);
    });
  });

  describe('skip up to', () => {
    test('ends open events up to a given one, for one or all group keys', async () => {
      const inbox = await start();
      const refs = (await inbox.publish(['a', 'b', 'a', 'b', 'a'])) as [string, string, string, string, string];
      const { operations } = inbox;
      const upTo = (groupKey?: string) => operations.skipUpTo(inbox.inbox, refs[3], { groupKey });
      expect(await upTo('b')).toEqual({ answer: 'OK', skipped: 2, cursor: undefined });
      expect(await lanes(inbox)).toEqual([['a', refs[0]]]);
      // The event in progress, and the next one.
      expect(await upTo()).toEqual({ answer: 'OK', skipped: 2, cursor: undefined });
      expect(await states(inbox)).toEqual(['skipped', 'skipped', 'skipped', 'skipped', 'pending']);
      await inbox.end({ lane: 'a', ref: refs[0] });
      expect(await lanes(inbox)).toEqual([['a', refs[4]]]);
      expect(await inbox.count()).toEqual({ routed: 5, skipped: 4, open: 1 });
    });

    test('distinguishes group keys with the same beginning', async () => {
      const inbox = await createPartInbox(redis(), {}, ['a', 'ab']);
      const [, ab] = (await inbox.publish(['a', 'ab', 'a'])) as [string, string, string];
      expect(await inbox.operations.skipUpTo(inbox.inbox, LAST, { groupKey: 'a' })).toMatchObject({ skipped: 2 });
      expect(await lanes(inbox)).toEqual([['ab', ab]]);
    });

    test('skips 200 events per call of this subscription, and continues using the cursor', async () => {
      const inbox = await start({ sub: { unordered: true } });
      await inbox.part.setRow('other', {});
      await inbox.part.activate('other', 'a');
      for (let n = 0; n < 9; n++)
        await inbox.publish(Array.from({ length: 50 }, (_, i) => ['a', 'b', 'c'][i % 3] as string));
      const claimed = (await inbox.d.exchange(20)).claims.filter(({ slot }) => slot === inbox.slot).length;
      const skipped: number[] = [];
      let cursor: string | undefined;
      do {
        const answer = await inbox.operations.skipUpTo(inbox.inbox, LAST, { cursor });
        if (answer.answer !== 'OK') throw new Error(answer.answer);
        skipped.push(answer.skipped);
        cursor = answer.cursor;
      } while (cursor !== undefined);
      expect(skipped).toEqual([200 + claimed, 200, 50 - claimed]);
      expect(await inbox.count()).toEqual({ routed: 450, skipped: 450, open: 0 });
      expect((await inbox.part.counts('other'))[1]).toBe(153);
      expect((await inbox.part.members('pending')).length).toBeGreaterThan(100);
    });

    test('BAD_CURSOR, BAD_REF', async () => {
      const { operations, inbox } = await start();
      const cursor = Buffer.from('nonsense').toString('base64url');
      expect(await operations.skipUpTo(inbox, LAST, { cursor })).toEqual({ answer: 'BAD_CURSOR' });
      expect(await operations.skipUpTo(inbox, 'x')).toEqual({ answer: 'BAD_REF' });
    });
  });

  describe('pull and acknowledge', () => {
    test('return the first event of each key until it is acknowledged, and then the next', async () => {
      const inbox = await start(PULL);
      const { operations, t } = inbox;
      const [a, b] = (await inbox.publish(['a', 'b'])) as [string, string];
      t.clock.ms += 1;
      const [a2] = (await inbox.publish(['a'], 'later')) as [string];
      const first = await operations.pull(inbox.inbox, { limit: 10 });
      expect(first).toMatchObject({ answer: 'OK', more: false, events: [{ ref: a, groupKey: 'a' }, { ref: b }] });
      expect(await operations.pull(inbox.inbox, { limit: 10, all: true })).toMatchObject({
        events: [{ ref: a }, { ref: a2 }, { ref: b }],
      });
      expect(await operations.pull(inbox.inbox, { limit: 1 })).toMatchObject({ more: true, events: [{ ref: a }] });
      expect(await operations.acknowledge(inbox.inbox, [{ ref: a }])).toEqual({ answer: 'OK', answers: ['OK'] });
      const second = await operations.pull(inbox.inbox, { limit: 10 });
      expect(second.answer === 'OK' && second.events.map(({ ref }) => ref).toSorted()).toEqual([a2, b].toSorted());
      expect(second.answer === 'OK' && second.events.find(({ ref }) => ref === a2)?.body.toString()).toBe('later');
    });

    test('in any order, once each; events that have ended return their result', async () => {
      const inbox = await start(PULL);
      const { operations } = inbox;
      const [a, a2, b] = (await inbox.publish(['a', 'a', 'b'])) as [string, string, string];
      await operations.skip(inbox.inbox, { ref: b });
      const all = [{ ref: a2 }, { ref: a }, { ref: b }, { ref: 'no ref' }];
      const answered = async () => (await operations.acknowledge(inbox.inbox, all)) as { answers?: unknown };
      expect((await answered()).answers).toEqual(['OK', 'OK', 'skipped', 'UNKNOWN']);
      expect((await answered()).answers).toEqual(['delivered', 'delivered', 'skipped', 'UNKNOWN']);
      expect(await inbox.count()).toEqual({ routed: 3, delivered: 2, skipped: 1, open: 0 });
      expect(await states(inbox)).toEqual(['delivered', 'delivered', 'skipped']);
      await expectEmpty(redis(), inbox.part);
    });

    test('are refused with an endpoint, which is the only one to acknowledge', async () => {
      const inbox = await start();
      const [a] = (await inbox.publish(['a'])) as [string];
      expect(await inbox.operations.acknowledge(inbox.inbox, [{ ref: a }])).toEqual({ answer: 'PUSHED' });
      expect(await inbox.operations.pull(inbox.inbox, { limit: 1 })).toEqual({ answer: 'PUSHED' });
      expect(await inbox.count()).toEqual({ routed: 1, open: 1 });
    });

    test.each([
      ['PAUSED', 'paused'],
      ['GONE', 'closed'],
    ] as const)('%s: no events are returned', async (answer, route) => {
      const inbox = await start(PULL);
      await inbox.publish(['a']);
      await inbox.say({ sub: { ...PULL.sub, route } });
      expect(await inbox.operations.pull(inbox.inbox, { limit: 1 })).toEqual({ answer });
    });

    test('CLOSED: no events are returned before the part has all of its activations', async () => {
      const inbox = await start(PULL);
      await inbox.publish(['a']);
      await redis().call('hdel', inbox.t.keys.keys, '');
      expect(await inbox.operations.pull(inbox.inbox, { limit: 1 })).toEqual({ answer: 'CLOSED' });
    });

    test('hold a key without an activation, and return it after the next one', async () => {
      const inbox = await start(PULL);
      const [a, b] = (await inbox.publish(['a', 'b'])) as [string, string];
      await inbox.t.deactivate('x', 'a');
      expect(await inbox.operations.pull(inbox.inbox, { limit: 9 })).toMatchObject({ events: [{ ref: b }] });
      await inbox.t.activate('x', 'a');
      const again = await inbox.operations.pull(inbox.inbox, { limit: 9 });
      expect(again.answer === 'OK' && again.events.map(({ ref }) => ref).toSorted()).toEqual([a, b]);
    });

    test('return bodies of more than 4 MiB in several responses', async () => {
      const inbox = await start({ sub: { ...PULL.sub, unordered: true } });
      for (let n = 0; n < 20; n++) await inbox.publish(['a', 'b'], 'x'.repeat(262_144));
      const answer = await inbox.operations.pull(inbox.inbox, { limit: 250 });
      expect(answer).toMatchObject({ answer: 'OK', more: true, events: { length: 16 } });
    });
  });
});
