import { describe, expect, test } from 'vitest';
import { createPartInbox, NOT_PUSHED, type PartInbox } from '../../../test/support/part/part-inbox.ts';
import type { EventState } from '../../core/events/event-state.ts';
import { refMs, refOfStreamId } from '../../core/ids/refs.ts';
import type { EventList } from '../../plane/inbox-reader.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { partRefOf } from './ref-names.ts';

const found = (list: EventList) =>
  list.answer === 'OK' ? list.events.map(({ ref, progress }) => [ref, progress.state]) : list.answer;

onEachRedis(redis => {
  /**
   * Stores one event for each state, 10 ms apart. The pending event waits after the retrying event, and its key is `a`.
   */
  async function everyState(): Promise<PartInbox & { refs: Record<Exclude<EventState, 'skipped'>, string> }> {
    const inbox = await createPartInbox(redis(), {}, ['a', 'b', 'c', 'd', 'e', 'f']);
    const { t, claim, end, publish } = inbox;
    const one = async (key: string) => {
      const [ref] = await publish([key]);
      t.clock.ms += 10;
      return ref as string;
    };
    const expired = await one('f');
    for (const each of await claim()) await end(each, { outcome: 'expired', record: `expired 1 0 retention -` });
    const delivered = await one('b');
    for (const each of await claim()) await end(each);
    const dead = await one('c');
    for (const each of await claim()) await end(each, { outcome: 'dead', record: 'dead 1 1 500 9' });
    const retrying = await one('a');
    for (const each of await claim()) {
      await end(each, { outcome: 'failed', dueMs: t.nowMs() + 60_000, attempt: `${t.nowMs()},503,7` });
    }
    const pending = await one('a');
    const inflight = await one('e');
    await claim();
    return { ...inbox, refs: { expired, delivered, dead, retrying, pending, inflight } };
  }

  async function allPages({ reader, inbox }: PartInbox, options: Omit<Parameters<typeof reader.list>[1], 'cursor'>) {
    const paged: unknown[] = [];
    let cursor: string | undefined;
    let pages = 0;
    do {
      const page = await reader.list(inbox, { ...options, cursor });
      if (page.answer !== 'OK') throw new Error(page.answer);
      expect(page.events.length).toBeLessThanOrEqual(options.limit);
      paged.push(...(found(page) as unknown[]));
      cursor = page.cursor;
      if (++pages > 500) throw new Error('too many pages');
    } while (cursor !== undefined);
    return paged;
  }

  describe('list', () => {
    test.each(['pending', 'inflight', 'retrying', 'delivered', 'dead', 'expired'] as const)(
      'by state: %s',
      async state => {
        const { inbox, reader, refs } = await everyState();
        expect(found(await reader.list(inbox, { states: [state], limit: 10 }))).toEqual([[refs[state], state]]);
      },
    );

    test('returns all events with their state, oldest or newest first', async () => {
      const { inbox, reader, refs } = await everyState();
      const order = ['expired', 'delivered', 'dead', 'retrying', 'pending', 'inflight'] as const;
      const all = order.map(state => [refs[state], state]);
      const oldest = await reader.list(inbox, { limit: 10 });
      expect(found(oldest)).toEqual(all);
      expect(found(await reader.list(inbox, { limit: 10, newestFirst: true }))).toEqual(all.toReversed());
      const [, delivered] = oldest.answer === 'OK' ? oldest.events : [];
      expect(delivered).toMatchObject({ groupKey: 'b', meta: { groupKey: 'b' }, bytes: 4, tokens: 1 });
      expect(delivered?.acceptedMs).toBe(refMs(refs.delivered));
      expect(delivered?.meta?.id).toMatch(/^evt_/);
    });

    test.each([
      ['all', undefined],
      ['those that ended badly', ['dead', 'skipped']],
      ['open', ['pending', 'retrying', 'inflight']],
      ['delivered and open', ['delivered', 'pending', 'inflight']],
    ] as const)('returns pages of %s, in a time range, in both directions', async (_what, states) => {
      const inbox = await createPartInbox(redis());
      const startMs = inbox.t.nowMs();
      const outcomes = ['delivered', 'dead'] as const;
      for (let n = 0; n < 24; n++) {
        await inbox.publish(['a', 'b', 'c']);
        for (const claim of (await inbox.claim()).slice(0, 2)) {
          const outcome = outcomes[n % 2] as 'dead';
          await inbox.end(claim, { outcome, record: `${outcome} ${inbox.t.nowMs()} 1 x 1` });
        }
        inbox.t.clock.ms += 1_000;
      }
      const range = { ...(states && { states }), fromMs: startMs + 2_000, toMs: startMs + 19_000 };
      const whole = found(await inbox.reader.list(inbox.inbox, { ...range, limit: 250 }));
      expect(whole.length).toBeGreaterThan(states?.[0] === 'pending' ? 3 : 10);
      for (const [ref] of whole) {
        expect(refMs(ref as string)).toBeGreaterThanOrEqual(range.fromMs);
        expect(refMs(ref as string)).toBeLessThan(range.toMs);
      }
      for (const newestFirst of [false, true]) {
        const paged = await allPages(inbox, { ...range, newestFirst, limit: 4 });
        expect(paged).toEqual(newestFirst ? (whole as unknown[]).toReversed() : whole);
      }
    });

    test('only contains the events of its subscription, each once, including events that were routed later', async () => {
      const inbox = await createPartInbox(redis());
      const { t, publish, reader } = inbox;
      await inbox.part.setRow('other', {});
      await inbox.part.activate('other', 'z');
      const mine = await publish(['a', 'z', 'b']);
      await inbox.say({ sub: { route: 'paused' } });
      const held = await publish(['a', 'z', 'c']);
      const listed = async () => found(await reader.list(inbox.inbox, { limit: 50 })) as [string, string][];
      expect((await listed()).map(([ref]) => ref)).toEqual([mine[0], mine[2]]);
      await inbox.say({ sub: {} });
      await t.advanceAll();
      const late = await publish(['a']);
      expect((await listed()).map(([ref]) => ref)).toEqual([mine[0], mine[2], held[0], held[2], late[0]]);
    });

    test('reads many events from full chunks, starting with the log', async () => {
      const inbox = await createPartInbox(redis(), { sub: { unordered: true, cap: 99 } });
      const refs: string[] = [];
      for (let n = 0; n < 20; n++) {
        refs.push(...(await inbox.publish(Array.from({ length: 53 }, () => 'a'))));
        inbox.t.clock.ms += 1;
      }
      const names = async (options: object, limit = 250) =>
        (await allPages(inbox, { ...options, limit })).map(each => (each as [string])[0]);
      expect(await names({})).toEqual(refs);
      expect(await names({ newestFirst: true }, 97)).toEqual(refs.toReversed());
      const middle = refMs(refs[530] as string);
      const before = refs.filter(ref => refMs(ref) < middle);
      expect(await names({ toMs: middle, newestFirst: true })).toEqual(before.toReversed());
      // Retention removes the first events. Their places in the list remain until it is pruned.
      await redis().call('xtrim', inbox.t.keys.log, 'minid', middle);
      expect(await names({})).toEqual(refs.slice(before.length));
      expect(await names({ newestFirst: true })).toEqual(refs.slice(before.length).toReversed());
      expect(await names({ states: ['pending'] })).toEqual(refs.slice(before.length));
    });

    test('GONE, BAD_CURSOR', async () => {
      const { inbox, reader } = await createPartInbox(redis());
      expect(await reader.list({ ...inbox, inc: 'other' }, { limit: 5 })).toEqual({ answer: 'GONE' });
      expect(await reader.list({ ...inbox, integration: 'other' }, { limit: 5 })).toEqual({ answer: 'GONE' });
      expect(await reader.list(inbox, { limit: 5, cursor: '!!' })).toEqual({ answer: 'BAD_CURSOR' });
    });
  });

  describe('inspect', () => {
    test('returns everything that is known about an event', async () => {
      const { t, inbox, reader, publish, drain } = await createPartInbox(redis());
      const [ref] = (await publish(['a'], 'x'.repeat(16_385))) as [string];
      await drain();
      expect(await reader.inspect(inbox, ref)).toMatchObject({
        answer: 'OK',
        event: {
          ref,
          acceptedMs: t.nowMs(),
          groupKey: 'a',
          meta: { groupKey: 'a', time: t.nowMs() },
          bytes: 16_385,
          tokens: 2,
          withheld: undefined,
          progress: { state: 'delivered', attempts: 1, reason: '204' },
          replays: [],
          responses: [],
        },
      });
    });

    test('keeps failed attempts and their responses in the record', async () => {
      const { t, inbox, reader, publish, claim, end, lapse } = await createPartInbox(redis());
      const [ref] = (await publish(['a'])) as [string];
      const history: object[] = [];
      const odd = Buffer.from([0, 10, 255, 32, 13]);
      for (let n = 1; n <= 3; n++) {
        const [each] = await claim();
        const dueMs = t.nowMs() + 1_000;
        const attempt = `${t.nowMs()},${500 + n},${n}`;
        await end(each as NonNullable<typeof each>, { outcome: 'failed', dueMs, attempt, responseBody: odd });
        history.push({ atMs: t.nowMs(), result: String(500 + n), latencyMs: n });
        const open = await reader.inspect(inbox, ref);
        expect(open).toMatchObject({ event: { progress: { state: 'retrying', attempts: n, dueMs, history } } });
        t.clock.ms = dueMs;
      }
      await claim();
      await lapse();
      const [last] = await claim();
      expect(last).toMatchObject({ attempts: 3, lapses: 1 });
      await end(last as NonNullable<typeof last>, { record: `delivered ${t.nowMs()} 4 204 5` });
      history.push({ atMs: t.nowMs(), result: '204', latencyMs: 5 });
      const responses = [1, 2, 3].map(attempt => ({ attempt, body: odd, truncated: false }));
      expect(await reader.inspect(inbox, ref)).toMatchObject({
        event: { progress: { state: 'delivered', attempts: 4, reason: '204', history }, responses },
      });
    });

    test.each(['PAUSED', 'INACTIVE'] as const)('%s: omits the body of an undelivered event', async answer => {
      const inbox = await createPartInbox(redis());
      const [sent, held] = (await inbox.publish(['a', 'a'], 'secret')) as [string, string];
      const [claim] = await inbox.claim();
      await inbox.end(claim as NonNullable<typeof claim>);
      const look = async (ref: string) => {
        const event = await inbox.reader.inspect(inbox.inbox, ref);
        return event.answer === 'OK' ? [event.event.body?.toString(), event.event.withheld] : event.answer;
      };
      expect(await look(held)).toEqual(['secret', undefined]);
      if (answer === 'PAUSED') await inbox.say({ sub: { route: 'paused', send: 'held' } });
      else await inbox.t.deactivate('x', 'a');
      expect(await look(sent)).toEqual(['secret', undefined]);
      expect(await look(held)).toEqual([undefined, answer]);
    });

    test('uses the record after retention, and then returns UNKNOWN', async () => {
      const { t, inbox, reader, refs } = await everyState();
      expect(await reader.inspect(inbox, refs.expired)).toMatchObject({
        event: { progress: { state: 'expired', reason: 'retention' } },
      });
      await redis().call('del', t.keys.log, t.keys.body);
      expect(await reader.inspect(inbox, refs.dead)).toMatchObject({
        event: { meta: undefined, body: undefined, groupKey: undefined, progress: { state: 'dead' } },
      });
      expect(await reader.inspect(inbox, refOfStreamId('1-1'))).toEqual({ answer: 'UNKNOWN' });
      expect(await reader.inspect(inbox, 'no ref')).toEqual({ answer: 'UNKNOWN' });
      expect(await reader.inspect({ ...inbox, inc: 'other' }, refs.dead)).toEqual({ answer: 'GONE' });
    });

    test('finds a record among those of hundreds of subscriptions', async () => {
      const inbox = await createPartInbox(redis());
      const others = Array.from({ length: 300 }, (_, n) => `other${n}`);
      for (const other of others) await inbox.part.setRow(other, {});
      for (const other of others) await inbox.part.activate(other, 'a');
      const [ref] = (await inbox.publish(['a'])) as [string];
      for (let left = 301; left > 0; ) {
        const { claims } = await inbox.d.exchange(64, NOT_PUSHED);
        for (const claim of claims)
          inbox.d.end(claim, 'delivered', { reason: claim.slot === inbox.slot ? '299' : '200' });
        if (claims.length === 0) throw new Error('nothing was claimed');
        left -= claims.length;
      }
      await inbox.d.exchange(0, NOT_PUSHED);
      expect(await inbox.t.chunkSizes(partRefOf(ref) as string)).toHaveLength(4);
      expect(await inbox.reader.inspect(inbox.inbox, ref)).toMatchObject({ event: { progress: { reason: '299' } } });
    });
  });
});
