import { describe, expect, test } from 'vitest';
import type { EventState } from '../core/events/event-state.ts';
import { refMs, refOfStreamId } from '../core/ids/refs.ts';
import type { EventList } from './inbox-reader.ts';
import { queueKeys } from './keys.ts';
import { onEachRedis } from './testing/each-redis.ts';
import { createInbox, type Inbox } from './testing/inbox.ts';
import { QUEUE, START_MS } from './testing/tenant.ts';

onEachRedis(redis => {
  /** One event of each state, 10 ms apart: pending waits behind retrying; its key is `a`. */
  async function everyState(): Promise<Inbox & { refs: Record<EventState, string> }> {
    const inbox = await createInbox(redis(), {}, ['a', 'b', 'c', 'd', 'e', 'f']);
    const { t, claim, end } = inbox;
    const one = async (key: string) => {
      const [ref] = await inbox.publish([key]);
      t.clock.ms += 10;
      return ref as string;
    };
    const expired = await one('f');
    await t.inboxes.expire(inbox.inbox, t.nowMs(), `${t.nowMs()}-0`);
    const delivered = await one('b');
    for (const each of await claim()) await end(each);
    const dead = await one('c');
    for (const each of await claim()) await end(each, { outcome: 'dead', record: `dead ${t.nowMs()} 1 500 9` });
    const skipped = await one('d');
    await inbox.operations.skip(inbox.inbox, { ref: skipped });
    const retrying = await one('a');
    for (const each of await claim()) {
      await end(each, { outcome: 'failed', dueMs: t.nowMs() + 60_000, attempt: `${t.nowMs()},503,7` });
    }
    const pending = await one('a');
    const inflight = await one('e');
    await claim();
    return { ...inbox, refs: { expired, delivered, dead, skipped, retrying, pending, inflight } };
  }
  const found = (list: EventList) =>
    list.answer === 'OK' ? list.events.map(({ ref, progress }) => [ref, progress.state]) : list.answer;

  describe('attempts', () => {
    test('those that failed are kept with the event, and move into its record', async () => {
      const { t, inbox, reader, publish, claim, end } = await createInbox(redis());
      const [ref] = (await publish(['a'])) as [string];
      const history: object[] = [];
      for (let n = 1; n <= 3; n++) {
        const [each] = await claim();
        const dueMs = t.nowMs() + 1_000;
        await end(each as NonNullable<typeof each>, {
          outcome: 'failed',
          dueMs,
          attempt: `${t.nowMs()},${500 + n},${n}`,
        });
        history.push({ atMs: t.nowMs(), result: String(500 + n), latencyMs: n });
        const open = await reader.inspect(inbox, ref);
        expect(open).toMatchObject({ event: { progress: { state: 'retrying', attempts: n, dueMs, history } } });
        t.clock.ms = dueMs;
      }
      // A lapse takes nothing away.
      await claim();
      t.clock.ms += 30_000;
      const [last] = await claim();
      expect(last).toMatchObject({ attempts: 3, lapses: 1 });
      await end(last as NonNullable<typeof last>, { record: `delivered ${t.nowMs()} 4 204 5` });
      history.push({ atMs: t.nowMs(), result: '204', latencyMs: 5 });
      const ended = await reader.inspect(inbox, ref);
      expect(ended).toMatchObject({ event: { progress: { state: 'delivered', attempts: 4, reason: '204', history } } });
    });

    test('the last 20', async () => {
      const { t, inbox, reader, publish, claim, end } = await createInbox(redis());
      const [ref] = (await publish(['a'])) as [string];
      for (let n = 1; n <= 25; n++) {
        const [each] = await claim();
        await end(each as NonNullable<typeof each>, { outcome: 'failed', dueMs: t.nowMs(), attempt: `${n},500,1` });
      }
      const answer = await reader.inspect(inbox, ref);
      const history = answer.answer === 'OK' ? answer.event.progress.history.map(({ atMs }) => atMs) : [];
      expect(history).toEqual(Array.from({ length: 20 }, (_, n) => n + 6));
      expect(answer).toMatchObject({ event: { progress: { attempts: 25 } } });
    });

    test('one that arrives at once costs what it did: a record, and nothing else', async () => {
      const { x, publish, drain } = await createInbox(redis());
      await publish(['a', 'b']);
      await drain();
      expect(await redis().call('exists', x.tries, x.failures, x.replays, x.final, x.claims)).toBe(0);
    });

    test('what failures were answered with is kept: any bytes, the last 100, at most 256 KiB', async () => {
      const { t, x, inbox, reader, publish, claim, end, forgive } = await createInbox(redis());
      const [ref] = (await publish(['a'])) as [string];
      const fail = async (responseBody: Buffer, responseTruncated = false) => {
        const [each] = await claim();
        await end(each as NonNullable<typeof each>, {
          outcome: 'failed',
          dueMs: t.nowMs(),
          attempt: '1,500,1',
          responseBody,
          ...(responseTruncated ? { responseTruncated } : {}),
        });
        await forgive();
      };
      const odd = Buffer.from([0, 10, 255, 32, 13]);
      await fail(odd);
      await fail(Buffer.alloc(0));
      const first = await reader.inspect(inbox, ref);
      expect(first).toMatchObject({ event: { responses: [{ attempt: 1, body: odd, truncated: false }] } });
      for (let n = 0; n < 120; n++) await fail(Buffer.from(`no ${n}`));
      const many = await reader.inspect(inbox, ref);
      const responses = many.answer === 'OK' ? many.event.responses : [];
      expect(responses).toHaveLength(100);
      expect(responses.at(-1)).toEqual({ attempt: 122, body: Buffer.from('no 119'), truncated: false });
      for (let n = 0; n < 30; n++) await fail(Buffer.alloc(16_384, n), true);
      const large = await reader.inspect(inbox, ref);
      expect(large.answer === 'OK' && large.event.responses.filter(({ truncated }) => truncated).length).toBe(15);
      expect(Number((await redis().readHash(x.failures)).bytes)).toBeLessThanOrEqual(256 * 1024);
    });

    test('a dead letter keeps the answer that made it one', async () => {
      const { inbox, reader, publish, drain } = await createInbox(redis());
      const [ref] = (await publish(['a'])) as [string];
      await drain({ outcome: 'dead', record: 'dead 5 1 500 9', responseBody: Buffer.from('sorry') });
      expect(await reader.inspect(inbox, ref)).toMatchObject({
        event: { progress: { state: 'dead' }, responses: [{ attempt: 1, body: Buffer.from('sorry') }] },
      });
    });
  });

  describe('list', () => {
    test.each(['pending', 'inflight', 'retrying', 'delivered', 'dead', 'skipped', 'expired'] as const)(
      'by state: %s',
      async state => {
        const { inbox, reader, refs } = await everyState();
        expect(found(await reader.list(inbox, { states: [state], limit: 10 }))).toEqual([[refs[state], state]]);
      },
    );

    test('all, oldest or newest first, with what they are; what retention took is among those that expired', async () => {
      const { inbox, reader, refs } = await everyState();
      const order = ['delivered', 'dead', 'skipped', 'retrying', 'pending', 'inflight'] as const;
      const all = order.map(state => [refs[state], state]);
      const oldest = await reader.list(inbox, { limit: 10 });
      expect(found(oldest)).toEqual(all);
      expect(found(await reader.list(inbox, { limit: 10, newestFirst: true }))).toEqual(all.toReversed());
      expect(oldest).toMatchObject({
        events: [
          { groupKey: 'b', acceptedMs: START_MS + 10, meta: { groupKey: 'b' }, bytes: 4, tokens: 1 },
          ...all.slice(1).map(() => ({})),
        ],
      });
    });

    test.each([
      ['all', undefined],
      ['those that ended badly', ['dead', 'skipped']],
      ['open', ['pending', 'retrying', 'inflight']],
      ['delivered and open', ['delivered', 'pending', 'inflight']],
    ] as const)('pages of %s, in a range of time, both ways', async (_what, states) => {
      const inbox = await createInbox(redis());
      const refs: string[] = [];
      const outcomes = ['delivered', 'dead'] as const;
      for (let n = 0; n < 12; n++) {
        refs.push(...(await inbox.publish(['a', 'b', 'c'])));
        for (const claim of (await inbox.claim()).slice(0, 2)) {
          const outcome = outcomes[n % 2] as 'dead';
          await inbox.end(claim, { outcome, record: `${outcome} ${inbox.t.nowMs()} 1 x 1` });
        }
        inbox.t.clock.ms += 1_000;
      }
      const range = { ...(states && { states }), fromMs: START_MS + 2_000, toMs: START_MS + 9_000 };
      const whole = found(await inbox.reader.list(inbox.inbox, { ...range, limit: 250 }));
      expect(whole.length).toBeGreaterThan(5);
      for (const [ref] of whole) {
        expect(refMs(ref as string)).toBeGreaterThanOrEqual(range.fromMs);
        expect(refMs(ref as string)).toBeLessThan(range.toMs);
      }
      for (const newestFirst of [false, true]) {
        const paged: unknown[] = [];
        let cursor: string | undefined;
        do {
          const page = await inbox.reader.list(inbox.inbox, { ...range, newestFirst, cursor, limit: 4 });
          if (page.answer !== 'OK') throw new Error(page.answer);
          paged.push(...(found(page) as unknown[]));
          expect(page.events.length).toBeLessThanOrEqual(4);
          cursor = page.cursor;
        } while (cursor !== undefined);
        expect(paged).toEqual(newestFirst ? (whole as unknown[]).toReversed() : whole);
      }
    });

    test('looks at 1,000 a call: a rare one far behind is found by the cursor', async () => {
      const inbox = await createInbox(redis());
      const { x } = inbox;
      const add = (from: number, to: number) =>
        Promise.all(
          Array.from({ length: to - from }, (_, n) =>
            redis().call('xadd', x.log, `${START_MS - 10_000 + from + n}-0`, 'g', 'a'),
          ),
        );
      await add(0, 2_500);
      const bucket = x.records(Math.floor((START_MS - 10_000) / 21_600_000));
      const last = refOfStreamId(`${START_MS - 10_000 + 2_499}-0`);
      await redis().call('hset', bucket, last, 'delivered 1 1 204 1');
      let pages = 0;
      let page: EventList = await inbox.reader.list(inbox.inbox, { states: ['delivered'], limit: 5 });
      for (; page.answer === 'OK' && page.cursor !== undefined; pages++) {
        expect(page.events).toEqual([]);
        page = await inbox.reader.list(inbox.inbox, { states: ['delivered'], limit: 5, cursor: page.cursor });
      }
      expect(found(page)).toEqual([[last, 'delivered']]);
      expect(pages).toBe(2);
    });

    test('many open ones are found, too', async () => {
      const inbox = await createInbox(redis());
      const refs: string[] = [];
      for (let n = 0; n < 18; n++) refs.push(...(await inbox.publish(Array.from({ length: 60 }, () => 'a'))));
      const page = await inbox.reader.list(inbox.inbox, { states: ['pending'], limit: 250 });
      expect(page.answer === 'OK' && page.events.map(({ ref }) => ref)).toEqual(refs.slice(0, 250));
    });

    test('GONE, BAD_CURSOR', async () => {
      const { inbox, reader } = await createInbox(redis());
      expect(await reader.list({ ...inbox, inc: 'other' }, { limit: 5 })).toEqual({ answer: 'GONE' });
      expect(await reader.list(inbox, { limit: 5, cursor: '!!' })).toEqual({ answer: 'BAD_CURSOR' });
    });
  });

  describe('inspect', () => {
    test('everything that is known of one event', async () => {
      const { inbox, reader, publish, drain } = await createInbox(redis());
      const [ref] = (await publish(['a'], 'x'.repeat(16_385))) as [string];
      await drain();
      expect(await reader.inspect(inbox, ref)).toMatchObject({
        answer: 'OK',
        event: {
          ref,
          acceptedMs: START_MS,
          groupKey: 'a',
          meta: { groupKey: 'a', time: START_MS },
          bytes: 16_385,
          tokens: 2,
          withheld: undefined,
          progress: { state: 'delivered', attempts: 1 },
          replays: [],
          responses: [],
        },
      });
    });

    test.each(['PAUSED', 'INACTIVE'] as const)('%s: the body of what did not arrive is withheld', async answer => {
      const inbox = await createInbox(redis());
      const [sent, held] = (await inbox.publish(['a', 'a'], 'secret')) as [string, string];
      const [claim] = await inbox.claim();
      await inbox.end(claim as NonNullable<typeof claim>);
      const look = async (ref: string) => {
        const found = await inbox.reader.inspect(inbox.inbox, ref);
        return found.answer === 'OK' ? [found.event.body?.toString(), found.event.withheld] : found.answer;
      };
      expect(await look(held)).toEqual(['secret', undefined]);
      if (answer === 'PAUSED') await inbox.say({ sub: { route: 'paused', send: 'held' } });
      else await inbox.t.deactivate('x', 'a');
      expect(await look(sent)).toEqual(['secret', undefined]);
      expect(await look(held)).toEqual([undefined, answer]);
      // Skipping opens nothing.
      await inbox.operations.skip(inbox.inbox, { ref: held });
      expect(await look(held)).toEqual([undefined, answer]);
    });

    test('what retention took is known by its record, then not at all', async () => {
      const { t, inbox, reader, refs } = await everyState();
      expect(await reader.inspect(inbox, refs.expired)).toMatchObject({
        event: { progress: { state: 'expired', reason: 'retention' } },
      });
      const { bodies } = queueKeys(t.tenant, QUEUE, 'gen1');
      await redis().call('del', bodies);
      expect(await reader.inspect(inbox, refs.dead)).toMatchObject({ event: { meta: undefined, body: undefined } });
      expect(await reader.inspect(inbox, refOfStreamId('1-1'))).toEqual({ answer: 'UNKNOWN' });
      expect(await reader.inspect(inbox, 'no ref')).toEqual({ answer: 'UNKNOWN' });
      expect(await reader.inspect({ ...inbox, inc: 'other' }, refs.dead)).toEqual({ answer: 'GONE' });
    });
  });
});
