import { describe, expect, test } from 'vitest';
import { refOfStreamId } from '../core/ids/refs.ts';
import { inboxMember } from './inbox-store.ts';
import { BUCKET_MS, integrationKeys } from './keys.ts';
import { onEachRedis } from './testing/each-redis.ts';
import { createInbox, type Inbox } from './testing/inbox.ts';
import { type IntegrationShort, items, START_MS } from './testing/tenant.ts';

const PULL: IntegrationShort = { sub: { send: 'held', endpoint: '' } };

onEachRedis(redis => {
  const start = (integration: IntegrationShort = {}) => createInbox(redis(), integration);
  const lanes = async ({ claim }: Inbox) => (await claim()).map(({ lane, ref }) => [lane, ref]);

  describe('skip', () => {
    test('ends an open event for good, once, and wakes the dispatchers', async () => {
      const inbox = await start();
      const [a, a2] = (await inbox.publish(['a', 'a'])) as [string, string];
      expect(await inbox.operations.skip(inbox.inbox, { ref: a })).toBe('OK');
      expect(await inbox.count()).toEqual({ routed: 2, skipped: 1, open: 1 });
      expect(inbox.lowered).toEqual([
        { member: inboxMember(inbox.inbox), dueMs: START_MS, home: `${inbox.t.tenant}:orders` },
      ]);
      expect(await lanes(inbox)).toEqual([['a', a2]]);
      expect(await inbox.operations.skip(inbox.inbox, { ref: a })).toBe('skipped');
      expect(await inbox.count()).toEqual({ routed: 2, skipped: 1, open: 1 });
    });

    test('the head of a lane: the next goes at once, not when the skipped one was due', async () => {
      const inbox = await start();
      const [a, a2] = (await inbox.publish(['a', 'a'])) as [string, string];
      for (const claim of await inbox.claim()) await inbox.end(claim, { outcome: 'failed', dueMs: START_MS + 60_000 });
      expect(await lanes(inbox)).toEqual([]);
      await inbox.operations.skip(inbox.inbox, { ref: a });
      expect(await lanes(inbox)).toEqual([['a', a2]]);
    });

    test('behind the head: a head that waits for its retry does not go early', async () => {
      const inbox = await start();
      const [a, a2] = (await inbox.publish(['a', 'a'])) as [string, string];
      for (const claim of await inbox.claim()) await inbox.end(claim, { outcome: 'failed', dueMs: START_MS + 60_000 });
      expect(await inbox.operations.skip(inbox.inbox, { ref: a2 })).toBe('OK');
      expect(await lanes(inbox)).toEqual([]);
      inbox.t.clock.ms += 60_000;
      expect(await lanes(inbox)).toEqual([['a', a]]);
    });

    test('during an attempt it wins: the late answer is GONE, and the lane goes on', async () => {
      const inbox = await start();
      const [a, a2] = (await inbox.publish(['a', 'a'])) as [string, string];
      const [claim] = await inbox.claim();
      expect(await inbox.operations.skip(inbox.inbox, { ref: a })).toBe('OK');
      expect(await inbox.end(claim as NonNullable<typeof claim>)).toBe('GONE');
      expect(await inbox.count()).toEqual({ routed: 2, skipped: 1, open: 1 });
      expect(await lanes(inbox)).toEqual([['a', a2]]);
    });

    test('what ended otherwise says how; what never was here is UNKNOWN', async () => {
      const inbox = await start();
      const [a, b] = (await inbox.publish(['a', 'b'])) as [string, string];
      const [first, second] = await inbox.claim();
      await inbox.end(first as NonNullable<typeof first>);
      await inbox.end(second as NonNullable<typeof second>, { outcome: 'dead', record: 'dead 1 1 500 3' });
      expect(await inbox.operations.skip(inbox.inbox, { ref: a })).toBe('delivered');
      expect(await inbox.operations.skip(inbox.inbox, { ref: b })).toBe('dead');
      const unknown = refOfStreamId(`${START_MS}-999`);
      expect(await inbox.operations.skip(inbox.inbox, { ref: unknown })).toBe('UNKNOWN');
      expect(await inbox.operations.skip(inbox.inbox, { ref: 'no ref' })).toBe('UNKNOWN');
      expect(await inbox.operations.skip({ ...inbox.inbox, inc: 'other' }, { ref: a })).toBe('GONE');
    });

    test('without order the others are not touched', async () => {
      const inbox = await start({ sub: { unordered: true } });
      const [a, a2] = (await inbox.publish(['a', 'a'])) as [string, string];
      await inbox.operations.skip(inbox.inbox, { ref: a });
      expect(await lanes(inbox)).toEqual([[`a\0${a2}`, a2]]);
      expect(await redis().call('zcard', inbox.x.due)).toBe(1);
    });

    test('of a lane whose activation is gone, nothing goes out', async () => {
      const inbox = await start();
      const [a] = (await inbox.publish(['a', 'a'])) as [string];
      await inbox.t.deactivate('x', 'a');
      expect(await inbox.operations.skip(inbox.inbox, { ref: a })).toBe('OK');
      expect(await lanes(inbox)).toEqual([]);
    });
  });

  describe('skip up to', () => {
    test('ends what is open up to one, of all group keys or of one, and keeps the rest', async () => {
      const inbox = await start();
      const refs = (await inbox.publish(['a', 'b', 'a', 'b', 'a'])) as [string, string, string, string, string];
      const { operations } = inbox;
      expect(await operations.skipUpTo(inbox.inbox, refs[3], { groupKey: 'b' })).toEqual({
        answer: 'OK',
        skipped: 2,
        cursor: undefined,
      });
      expect(await lanes(inbox)).toEqual([['a', refs[0]]]);
      expect(await operations.skipUpTo(inbox.inbox, refs[3])).toEqual({ answer: 'OK', skipped: 2, cursor: undefined });
      expect(await lanes(inbox)).toEqual([['a', refs[4]]]);
      expect(await inbox.count()).toEqual({ routed: 5, skipped: 4, open: 1 });
    });

    test('a group key that begins like another one is another one', async () => {
      const inbox = await createInbox(redis(), {}, ['a', 'ab']);
      const [, ab] = (await inbox.publish(['a', 'ab', 'a'])) as [string, string, string];
      expect(await inbox.operations.skipUpTo(inbox.inbox, 'z'.repeat(15), { groupKey: 'a' })).toMatchObject({
        skipped: 2,
      });
      expect(await lanes(inbox)).toEqual([['ab', ab]]);
    });

    test('200 a call, resumed by the cursor, over events of many weeks', async () => {
      const inbox = await start();
      const ids = Array.from({ length: 450 }, (_, n) => `${START_MS - (450 - n) * (BUCKET_MS / 5)}-0`);
      const entries = ids.map((id, n) => ({ id, groupKey: ['a', 'b', 'c'][n % 3] as string }));
      for (const groupKey of ['a', 'b', 'c']) {
        await inbox.t.deactivate('x', groupKey);
        await inbox.t.activate('x', groupKey, 0);
      }
      const i = integrationKeys(inbox.inbox.integration);
      await redis().call('hset', i.meta, 'since', 0);
      await redis().call('hset', i.sub(inbox.inbox.sub), 'since', 0);
      await inbox.t.inboxes.route(inbox.inbox, START_MS, START_MS, 'gen1', '', items(entries));
      const upTo = refOfStreamId(ids[400] as string);
      const skipped: number[] = [];
      let cursor: string | undefined;
      do {
        const answer = await inbox.operations.skipUpTo(inbox.inbox, upTo, { cursor });
        if (answer.answer !== 'OK') throw new Error(answer.answer);
        skipped.push(answer.skipped);
        cursor = answer.cursor;
      } while (cursor !== undefined);
      expect(skipped).toHaveLength(3);
      expect(skipped.reduce((a, b) => a + b)).toBe(401);
      expect(await inbox.count()).toEqual({ routed: 450, skipped: 401, open: 49 });
      expect(await lanes(inbox)).toHaveLength(3);
    });

    test('BAD_CURSOR, BAD_REF', async () => {
      const { operations, inbox } = await start();
      const cursor = Buffer.from('nonsense').toString('base64url');
      expect(await operations.skipUpTo(inbox, 'z'.repeat(15), { cursor })).toEqual({ answer: 'BAD_CURSOR' });
      expect(await operations.skipUpTo(inbox, 'x')).toEqual({ answer: 'BAD_REF' });
    });
  });

  describe('pull and acknowledge', () => {
    test('the head of each key, oldest first, until it is acknowledged; then the next', async () => {
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

    test('acknowledges in any order, once each; final ones say how they ended', async () => {
      const inbox = await start(PULL);
      const { operations } = inbox;
      const [a, a2, b] = (await inbox.publish(['a', 'a', 'b'])) as [string, string, string];
      await operations.skip(inbox.inbox, { ref: b });
      const all = [{ ref: a2 }, { ref: a }, { ref: b }, { ref: 'no ref' }];
      expect(await operations.acknowledge(inbox.inbox, all)).toEqual({
        answer: 'OK',
        answers: ['OK', 'OK', 'skipped', 'UNKNOWN'],
      });
      expect(await operations.acknowledge(inbox.inbox, all)).toEqual({
        answer: 'OK',
        answers: ['delivered', 'delivered', 'skipped', 'UNKNOWN'],
      });
      expect(await inbox.count()).toEqual({ routed: 3, delivered: 2, skipped: 1, open: 0 });
      expect(await redis().call('exists', inbox.x.pending, inbox.x.due, inbox.x.claims, inbox.x.tries)).toBe(0);
    });

    test('with an endpoint, that alone acknowledges', async () => {
      const inbox = await start();
      const [a] = (await inbox.publish(['a'])) as [string];
      expect(await inbox.operations.acknowledge(inbox.inbox, [{ ref: a }])).toEqual({ answer: 'PUSHED' });
      expect(await inbox.operations.pull(inbox.inbox, { limit: 1 })).toEqual({ answer: 'PUSHED' });
      expect(await inbox.count()).toEqual({ routed: 1, open: 1 });
    });

    test.each([
      ['PAUSED', { sub: { ...PULL.sub, route: 'paused' } }],
      ['REVOKED', { ...PULL, state: 'closed' }],
      ['GONE', { sub: { ...PULL.sub, route: 'closed' } }],
    ] as const)('%s: nothing is given out (%j)', async (answer, integration) => {
      const inbox = await start(PULL);
      await inbox.publish(['a']);
      await inbox.say(integration);
      expect(await inbox.operations.pull(inbox.inbox, { limit: 1 })).toEqual({ answer });
    });

    test('a key whose activation is gone is held, and given out after the next one', async () => {
      const inbox = await start(PULL);
      const [a, b] = (await inbox.publish(['a', 'b'])) as [string, string];
      await inbox.t.deactivate('x', 'a');
      expect(await inbox.operations.pull(inbox.inbox, { limit: 9 })).toMatchObject({ events: [{ ref: b }] });
      await inbox.t.activate('x', 'a');
      const again = await inbox.operations.pull(inbox.inbox, { limit: 9 });
      expect(again.answer === 'OK' && again.events.map(({ ref }) => ref).toSorted()).toEqual([a, b]);
    });

    test('bodies of more than 4 MiB come in several answers', async () => {
      const inbox = await start({ sub: { ...PULL.sub, unordered: true } });
      await redis().call('hset', `{q:${inbox.t.tenant}:orders}:meta`, 'maxBytes', 100_000_000);
      for (let n = 0; n < 20; n++) await inbox.publish(['a', 'b'], 'x'.repeat(262_144));
      const answer = await inbox.operations.pull(inbox.inbox, { limit: 250 });
      expect(answer).toMatchObject({ answer: 'OK', more: true, events: { length: 16 } });
    });
  });

  test('skipping 50,000 lanes is bounded a call', async () => {
    const inbox = await createInbox(redis(), {}, []);
    const members = Array.from({ length: 50_000 }, (_, n) => [`k${n}`, refOfStreamId(`${START_MS}-${n}`)] as const);
    for (let at = 0; at < members.length; at += 1_000) {
      const part = members.slice(at, at + 1_000);
      await redis().call('zadd', inbox.x.pending, ...part.flatMap(([key, ref]) => [0, `${key}\0${ref}`]));
      await redis().call('zadd', inbox.x.due, ...part.flatMap(([key]) => [START_MS, key]));
    }
    let cursor: string | undefined;
    for (let calls = 0; calls < 20; calls++) {
      const answer = await inbox.operations.skipUpTo(inbox.inbox, 'z'.repeat(15), { cursor });
      if (answer.answer !== 'OK') throw new Error(answer.answer);
      expect(answer.skipped).toBe(200);
      cursor = answer.cursor;
    }
    expect(await redis().call('zcard', inbox.x.due)).toBe(46_000);
  });
});
