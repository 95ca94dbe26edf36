import { describe, expect, test } from 'vitest';
import { FAILING_LIMIT_MS, parseEndpointHealth } from '../core/delivery/endpoint-health.ts';
import type { Claim, Completion } from './inbox-store.ts';
import { integrationKeys } from './keys.ts';
import { onEachRedis } from './testing/each-redis.ts';
import { createInbox } from './testing/inbox.ts';
import { START_MS, type SubscriptionShort } from './testing/tenant.ts';

const LEASE_MS = 25_000;
const RETRY_MS = 5_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

onEachRedis(redis => {
  async function start(sub: SubscriptionShort = {}, keys = ['a', 'b', 'c']) {
    const inbox = await createInbox(redis(), { sub }, keys);
    const { t } = inbox;
    const field = integrationKeys(inbox.inbox.integration).sub(inbox.inbox.sub);
    let turn = 0;
    const health = async () =>
      parseEndpointHealth(((await redis().call('hget', field, 'health')) ?? undefined) as string);
    async function ask(room = 64) {
      const token = `p${turn++}`;
      const claimed = await t.inboxes.claim(inbox.inbox, t.nowMs(), room, token, LEASE_MS);
      return claimed.answer === 'OK'
        ? { ...claimed, claims: claimed.claims.map(each => ({ ...each, token })) }
        : claimed;
    }
    async function take(room = 64) {
      const answer = await ask(room);
      return answer.answer === 'OK' ? answer.claims : [];
    }
    const completion = (
      { lane, ref, token }: Claim & { readonly token: string },
      outcome: Completion['outcome'],
      dueMs = t.nowMs() + RETRY_MS,
    ): Completion => {
      const attempt = `${t.nowMs()},${outcome === 'gone' ? 410 : 500},3`;
      const record = `${outcome} ${t.nowMs()} 1 500 3`;
      const tried = outcome === 'failed' || outcome === 'gone';
      return { lane, ref, token, outcome, ...(tried ? { attempt, dueMs } : { record }) };
    };
    return {
      ...inbox,
      health,
      ask,
      take,
      completion,
      finish: (
        claims: readonly (Claim & { readonly token: string })[],
        outcome: Completion['outcome'],
        dueMs?: number,
      ) =>
        t.inboxes.complete(
          inbox.inbox,
          t.nowMs(),
          claims.map(each => completion(each, outcome, dueMs)),
        ),
      enable: (enabledMs: number, send: SubscriptionShort['send'] = 'open') =>
        inbox.say({ sub: { ...sub, send, enabledMs } }),
    };
  }

  /** One that failed until its breaker opened, with `keys` in retry. */
  async function startOpen(keys: string[]) {
    const it = await start({}, [...keys, 'new']);
    await it.publish(keys);
    await it.finish(await it.take(), 'failed');
    it.t.clock.ms += 30_000;
    const [first, ...rest] = await it.take();
    if (first === undefined) throw new Error('nothing was due');
    await it.finish([first], 'failed', it.t.nowMs() + 1);
    await it.finish(rest, 'released');
    it.t.clock.ms += 1;
    return it;
  }

  test('an endpoint that works has no health, and writes none', async () => {
    const it = await start();
    await it.publish(['a', 'b']);
    expect((await it.drain()).length).toBe(2);
    expect(await it.health()).toBeUndefined();
  });

  describe('410 Gone', () => {
    test('disables at once: its own event stays open, nothing more is claimed, what comes is routed and held', async () => {
      const it = await start();
      const [a1] = await it.publish(['a', 'a', 'b']);
      const [first] = await it.take(1);
      if (first === undefined) throw new Error('nothing was due');
      const ended = await it.finish([first], 'gone');
      expect(ended).toMatchObject({ answers: ['OK'], disabled: true });
      expect(await it.health()).toMatchObject({ failures: 1, disabled: { ms: START_MS, by: 'gone' } });
      expect(await it.ask()).toEqual({ answer: 'DISABLED' });
      await it.publish(['c']);
      it.t.clock.ms += 3_600_000;
      expect(await it.ask()).toEqual({ answer: 'DISABLED' });
      expect(await it.count()).toEqual({ routed: 4, open: 4 });
      expect(await it.reader.inspect(it.inbox, a1 as string)).toMatchObject({
        event: { progress: { state: 'retrying', attempts: 1, history: [{ result: '410' }] } },
      });
    });

    test('says so in the step that claims, too', async () => {
      const it = await start();
      await it.publish(['a', 'b']);
      const [first] = await it.take(1);
      if (first === undefined) throw new Error('nothing was due');
      const claiming = { room: 9, token: 'next', leaseMs: LEASE_MS };
      const answer = await it.t.inboxes.exchange(it.inbox, it.t.nowMs(), [it.completion(first, 'gone')], claiming);
      expect(answer).toMatchObject({ answers: ['OK'], disabled: true, claimed: { answer: 'DISABLED' } });
    });

    test('once it is enabled again, by a later time than that, it goes on with the event that got it', async () => {
      const it = await start();
      const [a1] = await it.publish(['a', 'a', 'b', 'c']);
      const claims = await it.take();
      const gone = claims.filter(({ ref }) => ref === a1);
      await it.finish(
        claims.filter(({ ref }) => ref !== a1),
        'released',
      );
      it.t.clock.ms += 50;
      await it.finish(gone, 'gone');
      await it.enable(it.t.nowMs());
      expect(await it.ask()).toEqual({ answer: 'DISABLED' });
      it.t.clock.ms += 10;
      await it.enable(it.t.nowMs());
      expect(await it.take(1)).toMatchObject([{ ref: a1, attempts: 1 }]);
      expect(await it.health()).toBeUndefined();
    });

    test('a time that is still to come counts from then on', async () => {
      const it = await start();
      await it.publish(['a']);
      await it.finish(await it.take(), 'gone');
      await it.enable(START_MS + 700);
      expect(await it.ask()).toMatchObject({ claims: [], nextMs: START_MS + 700 });
      it.t.clock.ms += 700;
      expect(await it.take()).toHaveLength(1);
    });

    test('an attempt that succeeds after all enables nothing', async () => {
      const it = await start();
      await it.publish(['a', 'b']);
      const [one, other] = await it.take();
      if (one === undefined || other === undefined) throw new Error('nothing was due');
      await it.finish([one], 'gone');
      expect(await it.end(other)).toBe('OK');
      expect(await it.ask()).toEqual({ answer: 'DISABLED' });
    });

    test('a test event that is answered with it ends, and disables', async () => {
      const it = await start();
      await it.recovery.sendTest(it.inbox);
      const [tried] = await it.take();
      if (tried === undefined) throw new Error('nothing was due');
      expect(await it.end(tried, { outcome: 'dead', record: `dead ${START_MS} 1 410 3` })).toBe('OK');
      expect((await it.health())?.disabled).toEqual({ ms: START_MS, by: 'gone' });
      expect(await it.count()).toMatchObject({ tested: 1, dead: 1, open: 0 });
    });
  });

  describe('failures', () => {
    test('are counted from the first one on; a success forgets them', async () => {
      const it = await start();
      await it.publish(['a', 'b']);
      await it.finish(await it.take(1), 'failed');
      it.t.clock.ms += RETRY_MS;
      const [b, a] = await it.take();
      if (a === undefined || b === undefined) throw new Error('nothing was due');
      await it.finish([a], 'failed');
      expect(await it.health()).toEqual({ sinceMs: START_MS, failures: 2 });
      expect(await it.end(b)).toBe('OK');
      expect(await it.health()).toBeUndefined();
    });

    test('of five days, and nothing else, disable: not before, and not by fewer than ten', async () => {
      const it = await start();
      await it.publish(['a']);
      for (let n = 1; n <= 9; n++) {
        await it.finish(await it.take(), 'failed');
        it.t.clock.ms += FAILING_LIMIT_MS / 8;
      }
      expect(await it.health()).toEqual({ sinceMs: START_MS, failures: 9 });
      await it.enable(START_MS + 1);
      await it.finish(await it.take(), 'failed');
      const begunMs = it.t.nowMs();
      expect(await it.health()).toEqual({ sinceMs: begunMs, failures: 1 });
      for (let n = 2; n <= 12; n++) {
        it.t.clock.ms += RETRY_MS * 13;
        expect(await it.finish(await it.take(), 'failed')).not.toHaveProperty('disabled');
      }
      it.t.clock.ms = begunMs + FAILING_LIMIT_MS - 1;
      expect(await it.finish(await it.take(), 'failed')).not.toHaveProperty('disabled');
      it.t.clock.ms += RETRY_MS * 13;
      expect(await it.finish(await it.take(), 'failed')).toMatchObject({ answers: ['OK'], disabled: true });
      expect((await it.health())?.disabled).toEqual({ ms: it.t.nowMs(), by: 'failing' });
      expect(await it.ask()).toEqual({ answer: 'DISABLED' });
      expect(await it.count()).toMatchObject({ open: 1 });
    });

    test('of an attempt whose claim lapsed, and of an event that nobody sent, do not count', async () => {
      const it = await start();
      await it.publish(['a']);
      const late = await it.take();
      it.t.clock.ms += LEASE_MS;
      const [again] = await it.take();
      expect((await it.finish(late, 'gone')).answers).toEqual(['STALE']);
      if (again === undefined) throw new Error('nothing was due');
      expect(await it.end(again, { outcome: 'dead', record: `dead ${it.t.nowMs()} 0 poison -` })).toBe('OK');
      expect(await it.health()).toBeUndefined();
    });
  });

  describe('the breaker', () => {
    const keys = Array.from({ length: 40 }, (_, i) => `k${i}`);

    test('opens after ten failures in a row within half a minute; then one probe at a time is made', async () => {
      const it = await startOpen(keys);
      expect(await it.ask()).toMatchObject({ claims: [], nextMs: it.t.nowMs() - 1 + FIRST_PAUSE_MS });
      it.t.clock.ms += FIRST_PAUSE_MS;
      const probe = await it.ask();
      expect(probe).toMatchObject({ claims: { length: 1 }, nextMs: it.t.nowMs() + LEASE_MS });
      expect(await it.ask()).toMatchObject({ claims: [], nextMs: it.t.nowMs() + LEASE_MS });
    });

    test('pauses between probes grow to a minute, and use up the retries of nobody else', async () => {
      const it = await startOpen(keys);
      const pauses: number[] = [];
      let probes = 0;
      it.t.clock.ms += FIRST_PAUSE_MS;
      for (let n = 0; n < 8; n++) {
        const probe = await it.take();
        probes += probe.length;
        await it.finish(probe, 'failed');
        const next = await it.ask();
        if (next.answer !== 'OK' || next.nextMs === undefined) throw new Error('nothing waits');
        pauses.push(next.nextMs - it.t.nowMs());
        it.t.clock.ms = next.nextMs;
      }
      expect(probes).toBe(8);
      expect(pauses).toEqual([2_000, 4_000, 8_000, 16_000, 32_000, ...Array(3).fill(LONGEST_PAUSE_MS)]);
      // Retries that are hours apart find them small again.
      it.t.clock.ms += 3_600_000;
      await it.finish(await it.take(), 'failed');
      expect(await it.ask()).toMatchObject({ nextMs: it.t.nowMs() + FIRST_PAUSE_MS });
    });

    test('many failures at once open it without delay', async () => {
      const many = Array.from({ length: 120 }, (_, i) => `m${i}`);
      const it = await start({ cap: 500 }, many);
      await it.publish(many);
      await it.finish([...(await it.take()), ...(await it.take())].slice(0, 100), 'failed', START_MS + 1);
      expect(await it.ask()).toMatchObject({ claims: [], nextMs: START_MS + FIRST_PAUSE_MS });
    });

    test('those that were on their way when it opened make no pause longer', async () => {
      const it = await start({}, keys);
      await it.publish(keys);
      const claims = await it.take();
      await it.finish(claims.slice(0, 5), 'failed');
      it.t.clock.ms += 30_000 - 1;
      await it.finish(claims.slice(5, 10), 'failed');
      it.t.clock.ms += 1;
      await it.finish(claims.slice(10, 11), 'failed');
      await it.finish(claims.slice(11), 'failed');
      expect(await it.ask()).toMatchObject({ claims: [], nextMs: it.t.nowMs() + FIRST_PAUSE_MS });
    });

    test('the first success closes it, and all that was due goes on', async () => {
      const it = await startOpen(keys);
      it.t.clock.ms += FIRST_PAUSE_MS;
      const [probe] = await it.take();
      if (probe === undefined) throw new Error('nothing was due');
      expect(await it.end(probe)).toBe('OK');
      expect(await it.take()).toHaveLength(39);
    });

    test('a probe that was given back, or whose dispatcher died, is made by the next', async () => {
      const it = await startOpen(keys);
      it.t.clock.ms += FIRST_PAUSE_MS;
      await it.finish(await it.take(), 'released');
      expect(await it.take()).toHaveLength(1);
      expect(await it.take()).toHaveLength(0);
      it.t.clock.ms += LEASE_MS;
      expect(await it.take()).toHaveLength(1);
    });

    test('is closed when its owner says that the endpoint works again', async () => {
      const it = await startOpen(keys);
      await it.enable(it.t.nowMs());
      expect(await it.take()).toHaveLength(40);
    });
  });
});
