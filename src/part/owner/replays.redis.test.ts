import { describe, expect, test } from 'vitest';
import { createPartInbox, type InboxShort, type PartInbox } from '../../../test/support/part/part-inbox.ts';
import { createReplays } from '../../accounts/replays.ts';
import { inboxMember } from '../../plane/inbox-ref.ts';
import { accountKeys } from '../../redis/keys.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { createFindSlot } from '../inbox/find-part.ts';
import { partRefOf } from '../inbox/ref-names.ts';
import { recordsBucketOf } from '../keys.ts';
import { createPartInboxOperations } from './operations.ts';
import { createPartReplayInboxes } from './replays.ts';

const DEAD = { outcome: 'dead', record: 'dead 1 1 500 9' } as const;
const DEAD_ONES = { fromMs: 1, toMs: 1_900_000_000_000, states: ['dead'] as const };

onEachRedis(redis => {
  async function start(short: InboxShort = {}) {
    const inbox = await createPartInbox(redis(), short);
    await inbox.setAccount('Metered', 0);
    return inbox;
  }
  const replay = ({ replays, payer, inbox }: PartInbox, ref: string, id = 'rpl_1') =>
    replays.start(payer, id, inbox, { ref });

  test('sends one event again as part of the replay, charged to the account by its size', async () => {
    const inbox = await start();
    const [ref] = (await inbox.publish(['a'], 'x'.repeat(16_385))) as [string];
    await inbox.drain(DEAD);
    expect(await inbox.replays.price(inbox.inbox, { ref })).toMatchObject({ answer: 'OK', tokens: 2 });
    expect(await inbox.usedTokens()).toBe(0);
    const done = { answer: 'OK', replayId: 'rpl_1', events: 1, tokens: 2, complete: true, taken: 1, refunded: 0 };
    expect(await replay(inbox, ref)).toEqual({ ...done, cursor: undefined, isRepeated: false });
    expect(await inbox.usedTokens()).toBe(2);
    expect(await inbox.count()).toEqual({ routed: 1, dead: 1, replayed: 1, open: 1 });
    expect(await inbox.drain()).toEqual([['a\x01rpl_1', ref]]);
    expect(await inbox.count()).toEqual({ routed: 1, dead: 1, replayed: 1, delivered: 1, open: 0 });
    expect(await inbox.reader.inspect(inbox.inbox, ref)).toMatchObject({
      event: { progress: { state: 'dead' }, replays: [{ replayId: 'rpl_1', state: 'delivered', attempts: 1 }] },
    });
  });

  test('with the same id is the same replay, which is charged and queued once', async () => {
    const inbox = await start();
    const [ref, other] = (await inbox.publish(['a', 'b'])) as [string, string];
    await inbox.drain();
    const answers = await Promise.all(Array.from({ length: 20 }, () => replay(inbox, ref)));
    expect(answers.every(({ answer }) => answer === 'OK')).toBe(true);
    expect(answers.filter(each => 'isRepeated' in each && !each.isRepeated)).toHaveLength(1);
    expect(await inbox.drain()).toHaveLength(1);
    expect(await replay(inbox, ref)).toMatchObject({ answer: 'OK', complete: true, taken: 1, isRepeated: true });
    expect(await replay(inbox, other)).toEqual({ answer: 'CONFLICT' });
    expect(await inbox.drain()).toEqual([]);
    expect(await inbox.usedTokens()).toBe(1);
  });

  test('of two integrations of an account are two replays, even with the same id', async () => {
    const inbox = await start();
    const other = { integration: 'int_y', sub: 'sub_y0123456789abcdefghj', inc: 'inc1' };
    await inbox.part.setRow(other.sub, { integration: 'int_y', send: 'held' });
    await inbox.part.activate(other.sub, 'a');
    const [ref] = (await inbox.publish(['a'])) as [string];
    await inbox.drain();
    const findSlot = createFindSlot(inbox.client, () => inbox.part.part);
    await createPartInboxOperations(inbox.client, findSlot).skip(other, { ref });
    const replays = createReplays({
      redis: redis(),
      nowMs: inbox.t.nowMs,
      lowerAccounts: async () => {},
      inboxes: createPartReplayInboxes(inbox.client, findSlot),
      chunkEvents: 2,
      reclaimTokens: async () => false,
    });
    for (const of of [inbox.inbox, other]) {
      expect(await replays.start(inbox.payer, 'retry-1', of, { ref })).toMatchObject({ complete: true, taken: 1 });
    }
    expect(await inbox.usedTokens()).toBe(2);
    for (const of of [inbox.inbox, other]) {
      expect((await replays.read(inbox.payer, of.integration, 'retry-1'))?.inbox).toEqual(of);
    }
    expect(await replays.read(inbox.payer, 'int_z', 'retry-1')).toBeUndefined();
    expect((await inbox.part.members('pending')).map(entry => entry.slice(0, 8)).sort()).toEqual(
      [inbox.slot, inbox.part.slot(other.sub)].sort(),
    );
  });

  test('with two ids are two replays with separate lanes, which can be skipped', async () => {
    const inbox = await start();
    const [a] = (await inbox.publish(['a'])) as [string];
    await inbox.drain();
    await replay(inbox, a, 'one');
    await replay(inbox, a, 'two');
    expect(await inbox.operations.skip(inbox.inbox, { ref: a, replayId: 'one' })).toBe('OK');
    expect(await inbox.drain(DEAD)).toEqual([['a\x01two', a]]);
    expect(await inbox.reader.list(inbox.inbox, { states: ['dead', 'skipped'], limit: 9 })).toMatchObject({
      events: [{ replayId: 'one' }, { replayId: 'two' }],
    });
    expect(await inbox.count()).toEqual({ routed: 1, replayed: 2, delivered: 1, dead: 1, skipped: 1, open: 0 });
  });

  test('of a range first returns its count and price, in the order of each group key', async () => {
    const inbox = await start();
    const dead = await inbox.publish(['a', 'b', 'a', 'a']);
    await inbox.drain(DEAD);
    await inbox.publish(['a', 'b']);
    await inbox.drain();
    const events = dead.map(ref => ({ ref, tokens: 1 }));
    const price = await inbox.replays.price(inbox.inbox, DEAD_ONES);
    expect(price).toEqual({ answer: 'OK', events, tokens: 4, cursor: undefined });
    const answer = await inbox.replays.start(inbox.payer, 'r', inbox.inbox, DEAD_ONES);
    expect(answer).toMatchObject({ events: 4, taken: 4 });
    const ended = await inbox.drain();
    expect(ended.filter(([lane]) => lane === 'a\x01r').map(([, ref]) => ref)).toEqual([dead[0], dead[2], dead[3]]);
    expect(ended).toHaveLength(4);
    expect(await inbox.usedTokens()).toBe(4);
  });

  describe('is refused without a charge', () => {
    test('for events that are open, unknown, expired, or not permitted', async () => {
      const inbox = await start();
      const [open, sent] = (await inbox.publish(['a', 'b'])) as [string, string];
      const [first, second] = await inbox.claim();
      await inbox.end(second as NonNullable<typeof first>);
      expect(await replay(inbox, open)).toEqual({ answer: 'OPEN_EVENT' });
      expect(await replay(inbox, 'z'.repeat(15))).toEqual({ answer: 'UNKNOWN' });
      await inbox.t.deactivate('x', 'b');
      expect(await replay(inbox, sent)).toEqual({ answer: 'INACTIVE' });
      expect(await inbox.replays.start(inbox.payer, 'r', inbox.inbox, DEAD_ONES)).toMatchObject({ answer: 'NOTHING' });
      await inbox.say({ sub: { route: 'paused' } });
      expect(await replay(inbox, sent)).toEqual({ answer: 'PAUSED' });
      await inbox.say({});
      await redis().call('del', inbox.t.keys.log);
      expect(await replay(inbox, sent)).toEqual({ answer: 'EXPIRED' });
      expect(await inbox.usedTokens()).toBe(0);
    });

    test('for a plan with too few tokens', async () => {
      const inbox = await start();
      const [ref] = (await inbox.publish(['a'])) as [string];
      await inbox.drain();
      await inbox.setAccount('Free', 0);
      expect(await replay(inbox, ref)).toEqual({ answer: 'SHORT' });
      expect(await inbox.drain()).toEqual([]);
    });

    test('for tokens that a part may still use', async () => {
      const inbox = await start();
      await inbox.setAccount('Free', 10);
      const a = accountKeys(inbox.payer);
      await redis().call('hset', a.hold, 'ten_a:orders:g:0', 8);
      const debit = (tokens: number) =>
        redis().run(
          'debit',
          [a.meta, a.hold, a.replays, a.replay(`${tokens}`)],
          [inbox.t.nowMs(), `${tokens}`, tokens, 'f', 'v'],
        );
      expect([await debit(3), await debit(2), await debit(1)]).toEqual(['SHORT', 'OK', 'SHORT']);
    });
  });

  describe('completion', () => {
    /** Charges a replay without any other step, as if the process had crashed. */
    async function charge(inbox: PartInbox, refs: readonly string[], id = 'r', ref = inbox.inbox): Promise<void> {
      const a = accountKeys(inbox.payer);
      const place = await createPartReplayInboxes(inbox.client, inbox.findSlot).placeOf(inbox.inbox);
      const c0 = refs.map(each => `${each}01`).join('');
      const of = { inbox: inboxMember(ref), selection: '{}', chargedMs: inbox.t.nowMs(), events: refs.length };
      const name = `${ref.integration}/${id}`;
      const args = [inbox.t.nowMs(), name, refs.length, ...Object.entries({ ...of, cursor: '', place, c0 }).flat()];
      expect(await redis().run('debit', [a.meta, a.hold, a.replays, a.replay(name)], args)).toBe('OK');
    }

    test('continues once if a process has crashed', async () => {
      const inbox = await start();
      const refs = await inbox.publish(['a', 'b']);
      await inbox.drain(DEAD);
      await charge(inbox, refs);
      expect(await inbox.replays.sweep(inbox.payer)).toBe(inbox.t.nowMs() + 30_000);
      inbox.t.clock.ms += 30_000;
      expect(await inbox.replays.sweep(inbox.payer)).toBe(null);
      expect(await inbox.drain()).toHaveLength(2);
      expect(await inbox.usedTokens()).toBe(2);
      expect(await inbox.replays.sweep(inbox.payer)).toBe(null);
      expect(await inbox.drain()).toEqual([]);
    });

    test('queues a chunk once, even if it is repeated after its events were delivered', async () => {
      const inbox = await start();
      const refs = await inbox.publish(['a', 'b']);
      await inbox.drain();
      const inboxes = createPartReplayInboxes(inbox.client, inbox.findSlot);
      const place = await inboxes.placeOf(inbox.inbox);
      const enqueue = () => inboxes.enqueue({ inbox: inbox.inbox, replayId: 'r', number: 0, refs, place });
      expect(await enqueue()).toBe('tt');
      expect(await inbox.drain()).toHaveLength(2);
      expect(await enqueue()).toBe('tt');
      expect(await inbox.drain()).toEqual([]);
    });

    test.each<[string, () => Promise<undefined>]>([
      ['does not respond', () => Promise.reject(new Error('no answer'))],
      ['is not whole', async () => undefined],
    ])('does not wait for older replays of a part that %s', async (_what, enqueueElsewhere) => {
      const inbox = await start();
      const refs = await inbox.publish(['a']);
      await inbox.drain(DEAD);
      const elsewhere = { ...inbox.inbox, integration: 'int_y' };
      for (let n = 0; n < 50; n++) await charge(inbox, refs, `r${n}`, elsewhere);
      inbox.t.clock.ms += 1;
      await charge(inbox, refs);
      const inboxes = createPartReplayInboxes(inbox.client, inbox.findSlot);
      let tried = 0;
      const { sweep } = createReplays({
        redis: redis(),
        nowMs: inbox.t.nowMs,
        lowerAccounts: async () => {},
        inboxes: {
          ...inboxes,
          enqueue(chunk) {
            if (chunk.inbox.integration !== 'int_y') return inboxes.enqueue(chunk);
            tried++;
            return enqueueElsewhere();
          },
        },
        chunkEvents: 2,
        reclaimTokens: async () => false,
      });
      inbox.t.clock.ms += 30_000;
      expect(await sweep(inbox.payer)).toBe(inbox.t.nowMs() + 30_000);
      expect(await inbox.drain()).toEqual([['a\x01r', refs[0]]]);
      // It is not read for each of them.
      expect(tried).toBeLessThan(50);
    });

    test('refunds events that have expired or are open', async () => {
      const inbox = await start();
      const [gone] = (await inbox.publish(['a'])) as [string];
      inbox.t.clock.ms += 10;
      const [kept, open] = (await inbox.publish(['b', 'c'])) as [string, string];
      for (const each of await inbox.claim()) if (each.ref !== open) await inbox.end(each);
      await charge(inbox, [gone, kept, open]);
      await redis().call('xtrim', inbox.t.keys.log, 'minid', inbox.t.nowMs());
      inbox.t.clock.ms += 30_000;
      await inbox.replays.sweep(inbox.payer);
      expect(await inbox.usedTokens()).toBe(1);
      const intent = await redis().readHash(accountKeys(inbox.payer).replay('int_x/r'));
      expect(intent).toMatchObject({ state: 'done', taken: '1', refunded: '2' });
    });

    test.each<[string, (inbox: PartInbox) => Promise<unknown>]>([
      ['is closed', inbox => inbox.say({ sub: { route: 'closed' } })],
      ['is dropped', inbox => inbox.part.change({ kind: 'drop', slot: inbox.slot })],
      [
        'belongs to a recreated stream',
        inbox => inbox.part.gate({ ...inbox.part.part, gen: 'g2' }, 1, [{ kind: 'begin' }]),
      ],
    ])('refunds all events if the inbox %s', async (_how, make) => {
      const inbox = await start();
      const refs = await inbox.publish(['a', 'b']);
      await inbox.drain();
      await charge(inbox, refs);
      await make(inbox);
      inbox.t.clock.ms += 30_000;
      expect(await inbox.replays.sweep(inbox.payer)).toBe(null);
      expect(await inbox.usedTokens()).toBe(0);
      expect(await inbox.part.members('pending')).toEqual([]);
    });

    test('waits for an incomplete part, and ends after an hour', async () => {
      const inbox = await start();
      const refs = await inbox.publish(['a']);
      await inbox.drain();
      await charge(inbox, refs);
      await redis().call('hdel', inbox.t.keys.meta, 'ready');
      inbox.t.clock.ms += 30_000;
      expect(await inbox.replays.sweep(inbox.payer)).toBe(inbox.t.nowMs() + 30_000);
      expect(await inbox.usedTokens()).toBe(1);
      inbox.t.clock.ms += 3_600_001;
      expect(await inbox.replays.sweep(inbox.payer)).toBe(null);
      expect(await inbox.usedTokens()).toBe(0);
    });

    test('of many replays of one event keeps the last one, and all that are open', async () => {
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
      // Nobody can read the records of the others, which were delivered.
      const records = inbox.part.keys.records(recordsBucketOf(inbox.t.clock.ms));
      const names = (await redis().call('hkeys', records)) as string[];
      const replayed = names.flatMap(name => name.split(':').slice(1));
      expect(replayed.toSorted()).toEqual(ids.slice(1).toSorted());
    });

    test('of many replays of one event keeps those that have failed, and those of other subscriptions', async () => {
      const inbox = await start();
      const [ref] = (await inbox.publish(['a'])) as [string];
      await inbox.drain();
      await replay(inbox, ref, 'failed');
      await inbox.drain(DEAD);
      await replay(inbox, ref, 'shared');
      await inbox.drain();
      const records = inbox.part.keys.records(recordsBucketOf(inbox.t.clock.ms));
      const name = `${partRefOf(ref)}:shared`;
      const [fields] = (await redis().runBuffers('hashes', [records], [])) as [Buffer[]];
      const own = fields[fields.findIndex(field => String(field) === name) + 1] as Buffer;
      // Another subscription has used the same id.
      await redis().call('hset', records, name, Buffer.concat([own, Buffer.from('otherd1 1 204 3;')]));
      for (let n = 0; n < 20; n++) {
        await replay(inbox, ref, `r${n}`);
        await inbox.drain();
      }
      expect(await redis().call('hget', records, name)).toBe('\0otherd1 1 204 3;');
      const page = await inbox.reader.list(inbox.inbox, { states: ['dead'], limit: 10 });
      expect(page).toMatchObject({ events: [{ replayId: 'failed' }] });
    });
  });
});
