import { expect, test } from 'vitest';
import { parseDurationMs } from '../../../src/api/durations.ts';
import { ENDPOINT_DEFAULTS } from '../../../src/api/endpoint.ts';
import { nextAttempt } from '../../../src/core/delivery/backoff.ts';
import { inboxRefOf } from '../../../src/part/inbox/ref-names.ts';
import { onEachRedis } from '../../../src/redis/testing/each-redis.ts';
import { createPartInbox, NOT_PUSHED } from '../../support/part/part-inbox.ts';

const HOUR_MS = 3_600_000;
const SCHEDULE_MS = ENDPOINT_DEFAULTS.retrySchedule.map(parseDurationMs);
const KEYS = ['a', 'b', 'c', 'd', 'e'];

/** Returns a generator for numbers in [0, 1) which are the same in each run, including the extremes. */
function createRandom() {
  let state = 12_345;
  let turn = 0;
  return () => {
    if (turn++ % 7 === 0) return turn % 2 === 0 ? 0 : 0.999_999;
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}

test('the default schedule takes 75 hours', () => {
  const sumMs = SCHEDULE_MS.reduce((sum, ms) => sum + ms, 0);
  expect(Math.floor(sumMs / HOUR_MS)).toBe(75);
});

onEachRedis(redis => {
  /** Publishes five events for each of five keys to an endpoint that fails, using a manual clock. */
  async function start() {
    const it = await createPartInbox(redis(), {}, KEYS);
    const refs = await it.publish([...KEYS, ...KEYS, ...KEYS, ...KEYS, ...KEYS]);
    const random = createRandom();
    /** The start of each attempt of an event, in milliseconds, by its ref. */
    const begun = new Map<string, number[]>();
    const delivered: string[] = [];
    const endpoint = { works: false };
    const { d, t } = it;

    /** Claims all available events now, ends them, and returns the next due time. */
    async function attempt(): Promise<number | undefined> {
      for (;;) {
        const { claims, dueMs } = await d.exchange(64, NOT_PUSHED);
        if (claims.length === 0) return dueMs;
        for (const claim of claims) {
          const ref = inboxRefOf(claim.ref);
          const times = begun.get(ref) ?? [];
          begun.set(ref, [...times, t.clock.ms]);
          expect(claim.attempts).toBe(times.length % 10);
          if (endpoint.works) {
            delivered.push(ref);
            d.end(claim);
            continue;
          }
          const failures = claim.attempts + 1;
          const schedule = SCHEDULE_MS;
          const next = nextAttempt({ schedule, failures, randomUnit: random(), nowMs: t.clock.ms });
          if (next === 'dead') d.end(claim, 'dead', { reason: '503' });
          else d.end(claim, 'failed', { reason: '503', dueMs: next.dueAtMs });
        }
      }
    }
    /** The owner enables the endpoint so that no breaker delays the attempts. */
    const vouch = () => it.part.setRow(it.inbox.sub, { cap: 64, enabledMs: t.clock.ms });
    const keyOf = (ref: string) => KEYS[refs.indexOf(ref) % KEYS.length] as string;
    return { ...it, refs, begun, delivered, endpoint, attempt, vouch, keyOf };
  }

  test('retries are never early and at most 20% late for 75 hours, followed by a dead letter, and recovered events arrive in order', async () => {
    const it = await start();
    const { t } = it;
    const begunMs = t.clock.ms;
    const firstOf = it.refs.slice(0, 5);
    let steps = 0;
    // Until the first event of each key is a dead letter, after which the next event of the key is processed.
    while (firstOf.some(ref => (it.begun.get(ref)?.length ?? 0) < 10)) {
      const dueMs = await it.attempt();
      if (dueMs === undefined) throw new Error('no event is waiting');
      expect(dueMs).toBeGreaterThan(t.clock.ms);
      t.clock.ms = dueMs;
      await it.vouch();
      steps++;
    }
    expect(steps).toBeGreaterThan(45);
    for (const ref of firstOf) {
      const times = it.begun.get(ref) as number[];
      expect(times).toHaveLength(10);
      for (const [i, scheduledMs] of SCHEDULE_MS.entries()) {
        const waitedMs = (times[i + 1] as number) - (times[i] as number);
        expect(waitedMs).toBeGreaterThanOrEqual(scheduledMs);
        expect(waitedMs).toBeLessThanOrEqual(scheduledMs * 1.2);
      }
      const { event } = (await it.reader.inspect(it.inbox, ref)) as never as { event: { progress: object } };
      expect(event.progress).toMatchObject({ state: 'dead', attempts: 10, reason: '503', history: { length: 10 } });
    }
    expect(await it.count()).toMatchObject({ routed: 25, dead: 5, open: 20 });

    it.endpoint.works = true;
    await it.vouch();
    expect(await it.recovery.recover(it.inbox, { sinceMs: begunMs })).toMatchObject({ answer: 'OK' });
    expect(await it.attempt()).toBeUndefined();
    expect(await it.count()).toEqual({ routed: 25, delivered: 25, open: 0 });
    for (const key of KEYS) {
      expect(it.delivered.filter(ref => it.keyOf(ref) === key)).toEqual(it.refs.filter(ref => it.keyOf(ref) === key));
    }
  });
});
