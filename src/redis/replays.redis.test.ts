import { describe, expect, test } from 'vitest';
import { refOfStreamId } from '../core/ids/refs.ts';
import { inboxMember } from './inbox-store.ts';
import { accountKeys, integrationKeys, queueKeys } from './keys.ts';
import { onEachRedis } from './testing/each-redis.ts';
import { type Inbox } from './testing/inbox.ts';
import { createPaidInbox, DEAD, DEAD_ONES, replay } from './testing/replay.ts';
import { type IntegrationShort, QUEUE, START_MS } from './testing/tenant.ts';

onEachRedis(redis => {
  const start = (integration?: IntegrationShort) => createPaidInbox(redis(), integration);

  describe('one event', () => {
    test('is delivered again, under its replay, and charged to the account by its size', async () => {
      const inbox = await start();
      const [ref] = (await inbox.publish(['a'], 'x'.repeat(16_385))) as [string];
      await inbox.drain(DEAD);
      expect(await inbox.replays.price(inbox.inbox, { ref })).toMatchObject({ answer: 'OK', tokens: 2 });
      expect(await inbox.usedTokens()).toBe(0);
      inbox.lowered.length = 0;
      expect(await replay(inbox, ref)).toEqual({
        answer: 'OK',
        replayId: 'rpl_1',
        events: 1,
        tokens: 2,
        complete: true,
        taken: 1,
        refunded: 0,
        cursor: undefined,
      });
      expect(await inbox.usedTokens()).toBe(2);
      expect(inbox.lowered).toMatchObject([{ member: inboxMember(inbox.inbox), dueMs: START_MS }]);
      expect(await inbox.count()).toEqual({ routed: 1, dead: 1, replayed: 1, open: 1 });
      expect(await inbox.drain()).toEqual([['a\x01rpl_1', ref]]);
      expect(await inbox.count()).toEqual({ routed: 1, dead: 1, replayed: 1, delivered: 1, open: 0 });
      // The first delivery keeps its record.
      expect(await inbox.reader.inspect(inbox.inbox, ref)).toMatchObject({
        event: { progress: { state: 'dead' }, replays: [{ replayId: 'rpl_1', state: 'delivered', attempts: 1 }] },
      });
    });

    test('the same id again is the same replay: charged and queued once', async () => {
      const inbox = await start();
      const [ref] = (await inbox.publish(['a'])) as [string];
      await inbox.drain();
      const answers = await Promise.all(Array.from({ length: 20 }, () => replay(inbox, ref)));
      expect(answers.every(({ answer }) => answer === 'OK')).toBe(true);
      expect(await inbox.usedTokens()).toBe(1);
      expect(await inbox.drain()).toHaveLength(1);
      expect(await replay(inbox, ref)).toMatchObject({ answer: 'OK', complete: true, taken: 1 });
      expect(await inbox.drain()).toEqual([]);
      expect(await inbox.usedTokens()).toBe(1);
    });

    test('another id is another replay; one id for two things is a CONFLICT', async () => {
      const inbox = await start();
      const [a, b] = (await inbox.publish(['a', 'b'])) as [string, string];
      await inbox.drain();
      await replay(inbox, a, 'one');
      await replay(inbox, a, 'two');
      expect(await inbox.drain()).toEqual([
        ['a\x01one', a],
        ['a\x01two', a],
      ]);
      expect(await inbox.usedTokens()).toBe(2);
      expect(await replay(inbox, b, 'one')).toEqual({ answer: 'CONFLICT' });
      expect(await replay(inbox, b, 'no id')).toEqual({ answer: 'BAD_ID' });
      expect(await inbox.usedTokens()).toBe(2);
    });

    test('fails and dies as a first delivery does, with attempts and answers of its own; it may be skipped', async () => {
      const inbox = await start();
      const [ref] = (await inbox.publish(['a'])) as [string];
      await inbox.drain(DEAD);
      await replay(inbox, ref, 'one');
      const [claim] = await inbox.claim();
      const attempt = { attempt: '5,503,1', responseBody: Buffer.from('busy') };
      await inbox.end(claim as NonNullable<typeof claim>, { outcome: 'failed', dueMs: START_MS + 9, ...attempt });
      expect(await inbox.reader.inspect(inbox.inbox, ref)).toMatchObject({
        event: {
          progress: { state: 'dead' },
          replays: [{ replayId: 'one', state: 'retrying', attempts: 1, history: [{ result: '503' }] }],
          responses: [{ replayId: 'one', attempt: 1, body: Buffer.from('busy'), truncated: false }],
        },
      });
      expect(await inbox.reader.list(inbox.inbox, { states: ['retrying'], limit: 9 })).toMatchObject({
        events: [{ ref, replayId: 'one', groupKey: 'a' }],
      });
      expect(await inbox.operations.skip(inbox.inbox, { ref })).toBe('dead');
      expect(await inbox.operations.skip(inbox.inbox, { ref, replayId: 'one' })).toBe('OK');
      expect(await inbox.count()).toEqual({ routed: 1, dead: 1, replayed: 1, skipped: 1, open: 0 });
      expect(await redis().call('exists', inbox.x.pending, inbox.x.due, inbox.x.claims, inbox.x.tries)).toBe(0);
      expect(await inbox.reader.list(inbox.inbox, { states: ['dead', 'skipped'], limit: 9 })).toMatchObject({
        events: [
          { ref, progress: { state: 'dead' } },
          { ref, replayId: 'one', progress: { state: 'skipped' } },
        ],
      });
    });

    test.each<[string, (inbox: Inbox) => Promise<unknown>]>([
      ['PAUSED', inbox => inbox.say({ sub: { route: 'paused', send: 'held' } })],
      ['INACTIVE', inbox => inbox.t.deactivate('x', 'a')],
      ['REVOKED', inbox => inbox.say({ state: 'closed' })],
      ['GONE', inbox => inbox.say({ sub: { route: 'closed' } })],
      ['CLOSED', inbox => redis().call('hdel', integrationKeys(inbox.inbox.integration).meta, 'ready')],
      ['EXPIRED', inbox => inbox.t.inboxes.expire(inbox.inbox, START_MS, `${START_MS + 1}-0`)],
      ['EXPIRED', inbox => redis().call('del', queueKeys(inbox.t.tenant, QUEUE, 'gen1').events)],
      ['SHORT', inbox => inbox.setAccount('Free', 0)],
      ['CLOSED', inbox => redis().call('del', accountKeys(inbox.payer).meta)],
    ])('refused: %s, and nothing is charged', async (answer, make) => {
      const inbox = await start();
      const [ref] = (await inbox.publish(['a'])) as [string];
      await inbox.drain();
      await make(inbox);
      expect(await replay(inbox, ref)).toEqual({ answer });
      expect(await inbox.usedTokens()).toBe(0);
      expect(await redis().call('exists', accountKeys(inbox.payer).replay('rpl_1'))).toBe(0);
      expect((await inbox.count()).replayed).toBe(undefined);
    });

    test('refused while it is open, or unknown', async () => {
      const inbox = await start();
      const [ref] = (await inbox.publish(['a'])) as [string];
      expect(await replay(inbox, ref)).toEqual({ answer: 'OPEN_EVENT' });
      expect(await replay(inbox, refOfStreamId('1-1'))).toEqual({ answer: 'UNKNOWN' });
      expect(await inbox.usedTokens()).toBe(0);
    });

    test('a Free account is charged as far as its tokens reach, what queues reserved set aside', async () => {
      const inbox = await start();
      const [ref] = (await inbox.publish(['a'], 'x'.repeat(32_768))) as [string];
      await inbox.drain();
      await inbox.setAccount('Free', 5);
      expect(await replay(inbox, ref, 'one')).toMatchObject({ answer: 'OK' });
      await redis().call('hset', accountKeys(inbox.payer).hold, 'ten:queue', 2);
      expect(await replay(inbox, ref, 'two')).toEqual({ answer: 'SHORT' });
      await redis().call('hdel', accountKeys(inbox.payer).hold, 'ten:queue');
      expect(await replay(inbox, ref, 'two')).toMatchObject({ answer: 'OK' });
      expect(await replay(inbox, ref, 'three')).toEqual({ answer: 'SHORT' });
      expect(await inbox.usedTokens()).toBe(4);
    });
  });

  describe('its lanes', () => {
    test.each([false, true])('are its own: ordinary events are not held up (unordered: %s)', async unordered => {
      const inbox = await start({ sub: { unordered } });
      const [ref] = (await inbox.publish(['a'])) as [string];
      await inbox.drain();
      await replay(inbox, ref);
      for (const each of await inbox.claim()) await inbox.end(each, { outcome: 'failed', dueMs: START_MS + 60_000 });
      const [next] = (await inbox.publish(['a'])) as [string];
      const lane = unordered ? `a\0${next}` : 'a';
      expect(await inbox.drain()).toEqual([[lane, next]]);
      inbox.t.clock.ms += 60_000;
      expect(await inbox.drain()).toEqual([[unordered ? `a\x01rpl_1\0${ref}` : 'a\x01rpl_1', ref]]);
    });

    test.each([false, true])(
      'wait while their group key is not active, and go on with it (unordered: %s)',
      async unordered => {
        const inbox = await start({ sub: { unordered } });
        const refs = await inbox.publish(['a', 'a']);
        await inbox.drain(DEAD);
        await inbox.replays.start(inbox.payer, 'rpl_1', inbox.inbox, DEAD_ONES);
        await inbox.t.deactivate('x', 'a');
        expect(await inbox.drain()).toEqual([]);
        inbox.t.clock.ms += 10;
        await inbox.t.activate('x', 'a');
        expect((await inbox.drain()).map(([, ref]) => ref)).toEqual(refs);
      },
    );

    test.each([false, true])('that are claimed are not woken by an activation (unordered: %s)', async unordered => {
      const inbox = await start({ sub: { unordered } });
      const [ref] = (await inbox.publish(['a'])) as [string];
      await inbox.drain();
      await replay(inbox, ref);
      await inbox.publish(['a']);
      const claims = await inbox.claim();
      expect(claims).toHaveLength(2);
      await inbox.t.deactivate('x', 'a');
      await inbox.t.activate('x', 'a');
      expect(await inbox.claim()).toEqual([]);
      for (const each of claims) expect(await inbox.end(each)).toBe('OK');
    });

    test('end with retention, as the events do', async () => {
      const inbox = await start();
      const [ref] = (await inbox.publish(['a', 'b'])) as [string];
      await inbox.drain();
      await replay(inbox, ref, 'one');
      await replay(inbox, ref, 'two');
      const [claim] = await inbox.claim();
      expect(await inbox.t.inboxes.expire(inbox.inbox, START_MS, `${START_MS + 1}-0`)).toEqual({
        more: false,
        expired: 2,
      });
      expect(await inbox.end(claim as NonNullable<typeof claim>)).toBe('GONE');
      expect(await inbox.count()).toEqual({ routed: 2, delivered: 2, replayed: 2, expired: 2, open: 0 });
      expect(await redis().call('exists', inbox.x.pending, inbox.x.due, inbox.x.claims, inbox.x.replays)).toBe(0);
      expect(await inbox.reader.list(inbox.inbox, { states: ['expired'], limit: 9 })).toMatchObject({
        events: [
          { ref, replayId: 'one' },
          { ref, replayId: 'two' },
        ],
      });
    });
  });
});
