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

  describe('a range', () => {
    test('says count and price first; brings those that ended so, in order per group key', async () => {
      const inbox = await start();
      const dead = await inbox.publish(['a', 'b', 'a', 'a']);
      await inbox.drain(DEAD);
      await inbox.publish(['a', 'b']);
      await inbox.drain();
      await inbox.publish(['c']);
      const price = await inbox.replays.price(inbox.inbox, DEAD_ONES);
      expect(price).toEqual({
        answer: 'OK',
        events: dead.map(ref => ({ ref, tokens: 1 })),
        tokens: 4,
        cursor: undefined,
      });
      expect(await inbox.replays.start(inbox.payer, 'r', inbox.inbox, DEAD_ONES)).toMatchObject({
        events: 4,
        taken: 4,
      });
      const ended = await inbox.drain();
      const ofA = ended.filter(([lane]) => lane === 'a\x01r').map(([, ref]) => ref);
      expect(ofA).toEqual([dead[0], dead[2], dead[3]]);
      expect(ended).toHaveLength(5);
      expect(await inbox.usedTokens()).toBe(4);
    });

    test('leaves out group keys that are not active, and what is gone; an empty one is NOTHING', async () => {
      const inbox = await start();
      await inbox.publish(['a', 'b']);
      await inbox.drain(DEAD);
      await inbox.t.deactivate('x', 'a');
      expect(await inbox.replays.price(inbox.inbox, DEAD_ONES)).toMatchObject({ tokens: 1 });
      await inbox.t.deactivate('x', 'b');
      const answer = await inbox.replays.start(inbox.payer, 'r', inbox.inbox, DEAD_ONES);
      expect(answer).toEqual({ answer: 'NOTHING', cursor: undefined });
      expect(await inbox.replays.price(inbox.inbox, { ...DEAD_ONES, cursor: '!!' })).toEqual({ answer: 'BAD_CURSOR' });
      expect(await inbox.usedTokens()).toBe(0);
    });

    test('replays of replays are not: each event is in the range once', async () => {
      const inbox = await start();
      const [ref] = (await inbox.publish(['a'])) as [string];
      await inbox.drain(DEAD);
      await replay(inbox, ref);
      await inbox.drain(DEAD);
      expect(await inbox.replays.price(inbox.inbox, DEAD_ONES)).toMatchObject({
        events: [{ ref, tokens: 1 }],
        tokens: 1,
      });
    });

    test('10,000 events an operation, then the cursor goes on', { timeout: 60_000 }, async () => {
      const inbox = await start();
      const { t } = inbox;
      const q = queueKeys(t.tenant, QUEUE, 'gen1');
      const refs: string[] = [];
      for (let n = 0; n < 10_700; n += 100) {
        const ids = Array.from({ length: 100 }, (_, k) => `${START_MS + n + k}-0`);
        refs.push(...ids.map(refOfStreamId));
        await Promise.all(
          ids.flatMap(id => [
            redis().call('xadd', inbox.x.log, id, 'g', 'a'),
            redis().call('xadd', q.events, id, 'g', 'a', 's', 4),
          ]),
        );
      }
      for (let n = 0; n < refs.length; n += 500) {
        const part = refs.slice(n, n + 500);
        await redis().call('zadd', inbox.x.final, ...part.flatMap(ref => [0, ref]));
        const bucket = inbox.x.records(Math.floor(START_MS / 21_600_000));
        await redis().call('hset', bucket, ...part.flatMap(ref => [ref, 'dead 1 1 500 9']));
      }
      const sub = integrationKeys(inbox.inbox.integration).sub(inbox.inbox.sub);
      await redis().call('hset', sub, 'n:routed', refs.length, 'n:dead', refs.length);
      const first = await inbox.replays.start(inbox.payer, 'r1', inbox.inbox, DEAD_ONES);
      expect(first).toMatchObject({ answer: 'OK', events: 10_000, taken: 10_000, cursor: expect.any(String) });
      const cursor = first.answer === 'OK' ? first.cursor : undefined;
      const second = await inbox.replays.start(inbox.payer, 'r2', inbox.inbox, { ...DEAD_ONES, cursor });
      expect(second).toMatchObject({ answer: 'OK', events: 700, taken: 700, cursor: undefined });
      expect(await inbox.usedTokens()).toBe(10_700);
      expect(await inbox.count()).toMatchObject({ replayed: 10_700, open: 10_700 });
      // What is kept of it afterwards is small.
      expect(Object.keys(await redis().readHash(accountKeys(inbox.payer).replay('r1'))).toSorted()).not.toContain('c0');
    });
  });

  describe('completion', () => {
    /** Charged, and then nothing more: as if the process had died. */
    async function charge(inbox: Inbox, refs: readonly string[], id = 'r'): Promise<void> {
      const { payer } = inbox;
      const a = accountKeys(payer);
      const fields = {
        inbox: inboxMember(inbox.inbox),
        selection: '{}',
        chargedMs: inbox.t.nowMs(),
        events: refs.length,
        cursor: '',
        c0: refs.map(ref => `${ref}01`).join(''),
      };
      const args = [inbox.t.nowMs(), id, refs.length, ...Object.entries(fields).flat()];
      expect(await redis().run('debit', [a.meta, a.hold, a.replays, a.replay(id)], args)).toBe('OK');
    }

    test('somebody is to look before anything is charged', async () => {
      const inbox = await start();
      const [ref] = (await inbox.publish(['a'])) as [string];
      await inbox.drain();
      await redis().call('del', accountKeys(inbox.payer).meta);
      await replay(inbox, ref);
      expect(inbox.sweeps).toEqual([{ member: inbox.payer, dueMs: START_MS + 30_000 }]);
    });

    test('and again after it: who looked in between found nothing, and will not come back', async () => {
      const inbox = await start();
      const [ref] = (await inbox.publish(['a'])) as [string];
      await inbox.drain();
      await replay(inbox, ref);
      const hint = { member: inbox.payer, dueMs: START_MS + 30_000 };
      expect(inbox.sweeps).toEqual([hint, hint]);
    });

    test('the sweep goes on where one died, after 30 s', async () => {
      const inbox = await start();
      const refs = await inbox.publish(['a', 'b']);
      await inbox.drain(DEAD);
      await charge(inbox, refs);
      expect(await inbox.replays.sweep(inbox.payer)).toBe(START_MS + 30_000);
      expect(await inbox.drain()).toEqual([]);
      inbox.t.clock.ms += 30_000;
      expect(await inbox.replays.sweep(inbox.payer)).toBe(null);
      expect(await inbox.drain()).toHaveLength(2);
      expect(await inbox.usedTokens()).toBe(2);
      expect(await inbox.replays.sweep(inbox.payer)).toBe(null);
      expect(await inbox.drain()).toEqual([]);
    });

    test('refunds what retention took meanwhile, and what is open', async () => {
      const inbox = await start();
      const [gone] = (await inbox.publish(['a'])) as [string];
      inbox.t.clock.ms += 10;
      const [kept, open] = (await inbox.publish(['b', 'c'])) as [string, string];
      for (const each of await inbox.claim()) if (each.ref !== open) await inbox.end(each);
      await charge(inbox, [gone, kept, open]);
      await inbox.t.inboxes.expire(inbox.inbox, inbox.t.nowMs(), `${START_MS + 1}-0`);
      inbox.t.clock.ms += 30_000;
      await inbox.replays.sweep(inbox.payer);
      expect(await inbox.usedTokens()).toBe(1);
      expect(await redis().readHash(accountKeys(inbox.payer).replay('r'))).toMatchObject({
        state: 'done',
        taken: '1',
        refunded: '2',
      });
      expect(await inbox.count()).toMatchObject({ replayed: 1 });
    });

    test.each<[string, (inbox: Inbox) => Promise<unknown>]>([
      ['is closed', inbox => inbox.say({ sub: { route: 'closed' } })],
      ['was made anew', inbox => inbox.say({ sub: { inc: 'inc2' } })],
      ['is of an integration that was revoked', inbox => inbox.say({ state: 'closed' })],
    ])('refunds all when the inbox %s', async (_how, make) => {
      const inbox = await start();
      const refs = await inbox.publish(['a', 'b']);
      await inbox.drain();
      await charge(inbox, refs);
      await make(inbox);
      inbox.t.clock.ms += 30_000;
      expect(await inbox.replays.sweep(inbox.payer)).toBe(null);
      expect(await inbox.usedTokens()).toBe(0);
      expect(await redis().call('exists', inbox.x.pending)).toBe(0);
    });

    test('an inbox that is unknown now is waited for, and given up after an hour', async () => {
      const inbox = await start();
      const refs = await inbox.publish(['a']);
      await inbox.drain();
      await charge(inbox, refs);
      const { meta } = integrationKeys(inbox.inbox.integration);
      await redis().call('hdel', meta, 'ready');
      inbox.t.clock.ms += 30_000;
      expect(await inbox.replays.sweep(inbox.payer)).toBe(START_MS + 60_000);
      expect(await inbox.usedTokens()).toBe(1);
      inbox.t.clock.ms = START_MS + 3_600_001;
      expect(await inbox.replays.sweep(inbox.payer)).toBe(null);
      expect(await inbox.usedTokens()).toBe(0);
    });

    test('a chunk that comes again, however late, is not put again', async () => {
      const inbox = await start();
      const [ref] = (await inbox.publish(['a'])) as [string];
      await inbox.drain();
      await replay(inbox, ref);
      await inbox.drain();
      const i = integrationKeys(inbox.inbox.integration);
      const { log, pending, due, replays } = inbox.x;
      const keys = [i.meta, i.sub(inbox.inbox.sub), log, pending, due, replays, i.replay('rpl_1')];
      const args = [inbox.t.nowMs(), 1_000, inbox.inbox.inc, 'rpl_1', 0, ref, `${START_MS}-0`];
      expect(await redis().run('enqueue', keys, args)).toEqual(['OK', 't']);
      expect(await inbox.drain()).toEqual([]);
    });

    test('of many replays of one event the last are kept, and all that are open', async () => {
      const inbox = await start();
      const [ref] = (await inbox.publish(['a'])) as [string];
      await inbox.drain();
      await replay(inbox, ref, 'open');
      await inbox.claim();
      for (let n = 0; n < 25; n++) {
        await replay(inbox, ref, `r${n}`);
        await inbox.drain();
      }
      const answer = await inbox.reader.inspect(inbox.inbox, ref);
      const ids = answer.answer === 'OK' ? answer.event.replays.map(({ replayId }) => replayId) : [];
      expect(ids).toEqual(['open', ...Array.from({ length: 20 }, (_, n) => `r${n + 5}`)]);
    });
  });
});
