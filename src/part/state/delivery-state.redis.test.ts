import { expect, test } from 'vitest';
import { createPartInbox, NOT_PUSHED, type PartInbox } from '../../../test/support/part/part-inbox.ts';
import type { AttemptOutcome } from '../../api/delivery-status.ts';
import { parseDeliveryState } from '../../core/delivery/delivery-state.ts';
import { parseEndpointHealth } from '../../core/delivery/endpoint-health.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import type { Claim } from '../claims/message.ts';
import { inboxRefOf } from '../inbox/ref-names.ts';
import { createSubscriptionStates } from './subscriptions.ts';

const HOUR_MS = 3_600_000;

interface End {
  readonly outcome?: 'delivered' | 'dead' | 'failed' | 'gone' | 'released';
  readonly attempted?: AttemptOutcome;
  readonly dueMs?: number;
}
const DEAD = { outcome: 'dead', attempted: 'Timeout' } as const;

onEachRedis(redis => {
  async function start(sub: NonNullable<Parameters<typeof createPartInbox>[1]>['sub'] = {}) {
    const it = await createPartInbox(redis(), { sub });
    const { tenant, queue } = it.part.part;
    const states = createSubscriptionStates(it.client, ({ integration }) =>
      integration === it.inbox.integration ? { tenant, queue } : undefined,
    );
    const newsOf = (answer: Awaited<ReturnType<PartInbox['d']['exchange']>>) => {
      expect(answer.news.length).toBeLessThan(2);
      return answer.news.find(({ slot }) => slot === it.slot)?.news;
    };
    return {
      ...it,
      states,
      state: async () => parseDeliveryState((await states.readDeliveries([it.inbox]))[0] ?? {}),
      health: async () => parseEndpointHealth(await states.readHealth(it.inbox)),
      claims: async (room = 64) => (await it.d.exchange(room, NOT_PUSHED)).claims,
      /** Ends attempts in one exchange. Returns the new states. */
      finish: async (claims: readonly (Claim & { readonly as?: End })[], end: End = {}) => {
        for (const claim of claims) {
          const { outcome = 'delivered', ...fields } = claim.as ?? end;
          it.d.end(claim, outcome, { reason: outcome === 'delivered' ? '204' : '500', ...fields });
        }
        return newsOf(await it.d.exchange(0, NOT_PUSHED));
      },
      look: async (room = 64) => newsOf(await it.d.exchange(room, NOT_PUSHED)),
    };
  }

  test('nothing is recorded at first', async () => {
    const it = await start();
    expect(await it.look()).toBeUndefined();
    expect(await redis().call('exists', it.t.keys.counts, it.t.keys.deadLetters)).toBe(0);
    expect(await it.state()).toMatchObject({ attempt: undefined, dead: 0, backlog: '0' });
    expect(await it.health()).toBeUndefined();
  });

  test('contains the outcome of the last attempt and its time', async () => {
    const it = await start();
    await it.publish(['a', 'b']);
    const [first, second] = (await it.claims()) as [Claim, Claim];
    const failedMs = it.t.nowMs();
    const failed = { outcome: 'failed', attempted: 'HttpError', dueMs: failedMs + HOUR_MS } as const;
    expect(await it.finish([first], failed)).toEqual({
      before: { trouble: '- 0', backlog: '0' },
      now: { trouble: 'HttpError 0', backlog: '1' },
    });
    expect(await it.health()).toEqual({ sinceMs: failedMs, failures: 1 });
    it.t.clock.ms += 5_000;
    expect(await it.finish([second], failed)).toBeUndefined();
    expect(await it.state()).toMatchObject({ attempt: { outcome: 'HttpError', sinceMs: failedMs }, backlog: '1+' });
    it.t.clock.ms += HOUR_MS;
    const deliveredMs = it.t.nowMs();
    expect(await it.finish(await it.claims())).toMatchObject({ now: { trouble: 'Succeeded 0', backlog: '0' } });
    expect(await it.state()).toMatchObject({ attempt: { outcome: 'Succeeded', sinceMs: deliveredMs }, backlog: '0' });
    expect(await it.health()).toBeUndefined();
  });

  test('reports a removed endpoint', async () => {
    const it = await start();
    await it.publish(['a']);
    const news = await it.finish(await it.claims(), { outcome: 'gone', attempted: 'HttpError' });
    expect(news).toMatchObject({ now: { trouble: 'HttpError 0', backlog: '1' } });
    const nowMs = it.t.nowMs();
    expect(await it.health()).toEqual({ sinceMs: nowMs, failures: 1, disabled: { ms: nowMs, by: 'gone' } });
  });

  test('uses the last attempt of an exchange, and ignores released ones', async () => {
    const it = await start();
    await it.publish(['a', 'b', 'c']);
    const [a, b, c] = (await it.claims()) as [Claim, Claim, Claim];
    const failed = { outcome: 'failed', attempted: 'DnsFailed', dueMs: it.t.nowMs() + HOUR_MS } as const;
    await it.finish([
      { ...a, as: failed },
      { ...b, as: {} },
      { ...c, as: { outcome: 'released' } },
    ]);
    expect((await it.state()).attempt?.outcome).toBe('Succeeded');
  });

  test('the result of an earlier claim is not the result of the last attempt', async () => {
    const it = await start();
    await it.publish(['a']);
    const [claim] = (await it.claims()) as [Claim];
    await it.lapse();
    const other = it.part.dispatcher('d2');
    const [again] = (await other.exchange(64, NOT_PUSHED)).claims as [Claim];
    other.end(again, 'delivered');
    await other.exchange(0, NOT_PUSHED);
    await it.publish(['b']);
    it.d.end(claim, 'failed', { attempted: 'HttpError', dueMs: it.t.nowMs() + HOUR_MS });
    // The same exchange claims an event, so it writes the state.
    const { answers, claims } = await it.d.exchange(64, NOT_PUSHED);
    expect([answers, claims.length]).toEqual([['stale'], 1]);
    expect((await it.state()).attempt?.outcome).toBe('Succeeded');
    await it.finish(claims, { outcome: 'failed', attempted: 'Timeout', dueMs: it.t.nowMs() + HOUR_MS });
    it.d.end(again, 'delivered');
    await it.publish(['c']);
    expect((await it.d.exchange(64, NOT_PUSHED)).answers).toEqual(['ended']);
    expect((await it.state()).attempt?.outcome).toBe('Timeout');
  });

  test('counts the result of an attempt whose event was skipped', async () => {
    const it = await start();
    const [ref = ''] = await it.publish(['a']);
    const claims = await it.claims();
    await it.operations.skip(it.inbox, { ref });
    await it.publish(['b']);
    await it.finish(claims, { outcome: 'failed', attempted: 'Timeout', dueMs: it.t.nowMs() + HOUR_MS });
    await it.look();
    expect((await it.state()).attempt?.outcome).toBe('Timeout');
  });

  test('deliveries with the same result are not reported, and nothing more is written', async () => {
    const it = await start();
    await it.publish(['a']);
    await it.finish(await it.claims());
    const [before] = (await redis().call('hvals', it.t.keys.counts)) as [string];
    await it.publish(['a', 'b']);
    it.t.clock.ms += 1_000;
    expect(await it.finish(await it.claims())).toBeUndefined();
    const [after] = (await redis().call('hvals', it.t.keys.counts)) as [string];
    expect(after.split(' ')[8]).toBe(before.split(' ')[8]);
    expect(await redis().call('exists', it.t.keys.deadLetters, it.t.keys.health)).toBe(0);
  });

  test('the backlog counts waiting events by powers of ten, without attempts in progress', async () => {
    const it = await start({ unordered: true, cap: 100 });
    await it.publish(Array(9).fill('a'));
    expect((await it.look(1))?.now.backlog).toBe('1');
    await it.publish(['a', 'a', 'a']);
    expect((await it.state()).backlog).toBe('10+');
    expect((await it.look(1))?.now.backlog).toBe('2');
    expect((await it.look(64))?.now.backlog).toBe('0');
    expect((await it.state()).backlog).toBe('0');
  });

  test('includes waiting and skipped events of a paused subscription without an exchange', async () => {
    const it = await start({ send: 'held' });
    const [, last = ''] = await it.publish(['a', 'b']);
    expect((await it.state()).backlog).toBe('1+');
    expect(await it.operations.skipUpTo(it.inbox, last)).toMatchObject({ skipped: 2 });
    expect((await it.state()).backlog).toBe('0');
  });

  test('a replay waits like other events', async () => {
    const it = await start();
    await it.setAccount('Metered', 0);
    const [ref = ''] = await it.publish(['a']);
    await it.finish(await it.claims());
    await it.replays.start(it.payer, 'r', it.inbox, { ref });
    expect((await it.state()).backlog).toBe('1+');
    await it.finish(await it.claims());
    expect((await it.state()).backlog).toBe('0');
  });

  test('dead letters are counted until they are recovered; the first of each hour is reported', async () => {
    const it = await start({ unordered: true });
    const [first = '', second = '', third = '', fourth = ''] = await it.publish(['a', 'a', 'a', 'a']);
    const claims = await it.claims();
    const of = (ref: string) => claims.filter(each => inboxRefOf(each.ref) === ref);
    const firstMs = it.t.nowMs();
    expect((await it.finish(of(first), DEAD))?.now.trouble).toBe('Timeout 1');
    expect(await it.state()).toMatchObject({ dead: 1, firstDead: { ms: firstMs, ref: first } });
    it.t.clock.ms += HOUR_MS - 1;
    expect(await it.finish(of(second), DEAD)).toBeUndefined();
    expect((await it.state()).firstDead).toEqual({ ms: firstMs, ref: first });
    it.t.clock.ms += 1;
    const again = await it.finish(of(third), DEAD);
    expect(again?.before).toEqual(again?.now);
    expect(again).toBeDefined();
    expect(await it.state()).toMatchObject({ dead: 3, firstDead: { ms: firstMs + HOUR_MS, ref: third } });
    expect((await it.state()).youngestDeadMs).toBe(firstMs);
    await it.finish(of(fourth));
    await it.recovery.recover(it.inbox, { sinceMs: 0 });
    expect((await it.state()).dead).toBe(0);
    expect((await it.look())?.now.trouble).toBe('Succeeded 0');
    await it.count();
  });

  test('a failed test event is an attempt and not a dead letter', async () => {
    const it = await start();
    expect(await it.recovery.sendTest(it.inbox)).toMatchObject({ answer: 'OK' });
    await it.finish(await it.claims(), DEAD);
    expect(await it.state()).toMatchObject({ attempt: { outcome: 'Timeout' }, dead: 0, firstDead: undefined });
    expect(await it.look()).toBeUndefined();
    await it.count();
  });

  test('another generation, an unknown stream, and a deleted subscription are not read, and the latter is not recorded', async () => {
    const it = await start();
    await it.publish(['a']);
    const claims = await it.claims();
    const { readDeliveries, readHealth } = it.states;
    const unknown = { ...it.inbox, integration: 'int_unknown' };
    const [another, none, own] = await readDeliveries([{ ...it.inbox, inc: 'another' }, unknown, it.inbox]);
    expect([another, none]).toEqual([undefined, undefined]);
    expect(own).toMatchObject({ 'n:routed': '1' });
    await it.part.change({ kind: 'drop', slot: it.slot });
    expect(await it.finish(claims, DEAD)).toBeUndefined();
    expect(await redis().call('exists', it.t.keys.deadLetters)).toBe(0);
    expect(await readDeliveries([it.inbox])).toEqual([undefined]);
    expect(await readHealth(it.inbox)).toBeUndefined();
  });
});
