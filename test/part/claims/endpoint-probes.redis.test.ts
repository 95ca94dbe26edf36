import { expect, test } from 'vitest';
import { FAILING_LIMIT_MS, parseEndpointHealth } from '../../../src/core/delivery/endpoint-health.ts';
import { healthText } from '../../../src/part/state/health-text.ts';
import { onEachRedis } from '../../../src/redis/testing/each-redis.ts';
import { READY_MS } from '../../support/part/part.ts';
import { createPartInbox, NOT_PUSHED } from '../../support/part/part-inbox.ts';

const HOUR_MS = 3_600_000;
const FAILURES = 100;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

onEachRedis(redis => {
  async function start(groupKeys: readonly string[]) {
    const it = await createPartInbox(redis(), { sub: { cap: 500 } }, groupKeys);
    const { d, t } = it;
    const health = async () => parseEndpointHealth(healthText((await t.hash('health'))[it.slot] ?? ''));
    const lane = (name: string) => it.slot + name;
    /** Fails claims and schedules a retry in `afterMs`. Returns the response of the exchange. */
    async function fail(claims: readonly { lane: string }[], afterMs = 24 * HOUR_MS) {
      for (const claim of claims) {
        const own = d.held.get(lane(claim.lane));
        if (own !== undefined) d.end(own, 'failed', { reason: '500', dueMs: t.clock.ms + afterMs });
      }
      return d.exchange(0, NOT_PUSHED);
    }
    return { ...it, health, fail, lane };
  }

  /** Starts a subscription with an open breaker, a probe that is due now, and a waiting lane for each of the keys. */
  async function startOpen(keys: readonly string[]) {
    const failing = Array.from({ length: FAILURES }, (_, i) => `f${i}`);
    const it = await start([...failing, ...keys]);
    for (let at = 0; at < FAILURES; at += 50) await it.publish(failing.slice(at, at + 50));
    await it.fail([...(await it.claim()), ...(await it.claim())]);
    if (keys.length > 0) await it.publish(keys);
    expect(await it.claim()).toEqual([]);
    it.t.clock.ms += FIRST_PAUSE_MS;
    return it;
  }

  test('pauses between probes increase to a minute, and are reset after a pause without probes', async () => {
    const it = await startOpen(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j']);
    const pauses: number[] = [];
    for (let n = 0; n < 8; n++) {
      const probe = await it.claim();
      expect(probe).toHaveLength(1);
      await it.fail(probe);
      const { dueMs = 0 } = await it.d.exchange(0, NOT_PUSHED);
      pauses.push(dueMs - it.t.clock.ms);
      it.t.clock.ms = dueMs;
    }
    expect(pauses).toEqual([2_000, 4_000, 8_000, 16_000, 32_000, ...Array<number>(3).fill(LONGEST_PAUSE_MS)]);
    it.t.clock.ms += HOUR_MS;
    await it.fail(await it.claim());
    expect((await it.d.exchange(0, NOT_PUSHED)).dueMs).toBe(it.t.clock.ms + FIRST_PAUSE_MS);
  });

  test('failures of attempts that started before the breaker opened do not increase the pause', async () => {
    const keys = Array.from({ length: 40 }, (_, i) => `k${i}`);
    const it = await start(keys);
    await it.publish(keys);
    const claims = await it.claim();
    await it.fail(claims.slice(0, 5));
    it.t.clock.ms += 29_999;
    await it.fail(claims.slice(5, 10));
    expect((await it.health())?.failures).toBe(10);
    it.t.clock.ms += 1;
    await it.fail(claims.slice(10, 11));
    expect((await it.fail(claims.slice(11))).dueMs).toBe(it.t.clock.ms + FIRST_PAUSE_MS);
  });

  test.each(['expired', 'dead'] as const)(
    'the next probe is sent after a probe that ended as %s without an attempt',
    async outcome => {
      const it = await startOpen(['a', 'b']);
      const [probe] = await it.claim();
      expect(await it.claim()).toEqual([]);
      const record = `${outcome} ${it.t.clock.ms} 0 ${outcome === 'dead' ? 'poison' : 'expired'} -`;
      expect(await it.end(probe as NonNullable<typeof probe>, { outcome, record })).toBe('done');
      expect(await it.claim()).toHaveLength(1);
    },
  );

  test('a probe whose event was skipped does not block others', async () => {
    const it = await startOpen(['a', 'b']);
    const [probe] = await it.claim();
    await it.operations.skip(it.inbox, { ref: probe?.ref as string });
    expect(await it.end(probe as NonNullable<typeof probe>)).toBe('ended');
    expect(await it.claim()).toHaveLength(1);
  });

  test('a probe of a failed dispatcher is repeated within a minute', async () => {
    const it = await startOpen(['a']);
    expect(await it.claim()).toHaveLength(1);
    await it.lapse();
    it.t.clock.ms += LONGEST_PAUSE_MS - READY_MS;
    expect(await it.claim()).toMatchObject([{ lapses: 1 }]);
  });

  test('the owner can close the breaker', async () => {
    const it = await startOpen(['a', 'b', 'c']);
    it.t.clock.ms -= 1;
    expect(await it.claim()).toEqual([]);
    await it.part.setRow(it.inbox.sub, { cap: 500, enabledMs: it.t.clock.ms });
    expect(await it.claim()).toHaveLength(3);
  });

  test('a clock that was set back does not block probes', async () => {
    const it = await startOpen(['a', 'b']);
    it.t.clock.ms -= FIRST_PAUSE_MS + HOUR_MS;
    expect(await it.claim()).toHaveLength(1);
    expect(await it.claim()).toEqual([]);
  });

  test('an endpoint is disabled after five days and at least ten failures, and not before', async () => {
    const it = await start(['a']);
    await it.publish(['a']);
    const { clock } = it.t;
    const begunMs = clock.ms;
    const failOnce = async () => (await it.fail(await it.claim(), 1)).disabled;
    for (let n = 0; n < 9; n++) {
      expect(await failOnce()).toEqual([]);
      clock.ms += FAILING_LIMIT_MS / 8;
    }
    expect(await it.health()).toMatchObject({ sinceMs: begunMs, failures: 9 });
    await it.part.setRow(it.inbox.sub, { cap: 500, enabledMs: clock.ms });
    const sinceMs = clock.ms + 1;
    clock.ms = sinceMs;
    expect(await failOnce()).toEqual([]);
    for (let n = 2; n <= 12; n++) {
      clock.ms += LONGEST_PAUSE_MS;
      expect(await failOnce()).toEqual([]);
    }
    clock.ms = sinceMs + FAILING_LIMIT_MS - 1;
    expect(await failOnce()).toEqual([]);
    clock.ms += LONGEST_PAUSE_MS;
    expect(await failOnce()).toEqual([it.slot]);
    expect((await it.health())?.disabled).toEqual({ ms: clock.ms, by: 'failing' });
    expect(await it.count()).toMatchObject({ open: 1 });
  });

  test('ignores results of lapsed claims, and events that were not sent', async () => {
    const it = await start(['a']);
    await it.publish(['a']);
    const [late] = await it.claim();
    await it.lapse();
    const [again] = await it.claim();
    const other = it.part.dispatcher('d2');
    other.end({ lane: it.lane('a'), ref: (late as NonNullable<typeof late>).ref }, 'gone', { reason: '410' });
    await other.exchange(0, NOT_PUSHED);
    expect(await it.health()).toBeUndefined();
    const record = `dead ${it.t.clock.ms} 0 poison -`;
    expect(await it.end(again as NonNullable<typeof again>, { outcome: 'dead', record })).toBe('done');
    expect(await it.health()).toBeUndefined();
  });

  test('a test event that receives the response 410 ends and disables the endpoint', async () => {
    const it = await start(['a']);
    await it.recovery.sendTest(it.inbox);
    const [tried] = await it.claim();
    const record = `dead ${it.t.clock.ms} 1 410 3`;
    expect(await it.end(tried as NonNullable<typeof tried>, { outcome: 'dead', record })).toBe('done');
    expect((await it.health())?.disabled).toEqual({ ms: it.t.clock.ms, by: 'gone' });
  });
});
