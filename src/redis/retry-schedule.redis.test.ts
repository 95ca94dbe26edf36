import { expect, onTestFinished, test } from 'vitest';
import { redisUrl } from '../../test/support/redis/shared.ts';
import { parseDurationMs } from '../api/durations.ts';
import { ENDPOINT_DEFAULTS } from '../api/endpoint.ts';
import { DEFAULT_RETRY_SCHEDULE_MS, nextAttempt } from '../core/delivery/backoff.ts';
import { createLogger } from '../telemetry/log.ts';
import { connectRedis } from './client.ts';
import { createInbox } from './testing/inbox.ts';
import { START_MS } from './testing/tenant.ts';

const LEASE_MS = 25_000;
const HOUR_MS = 3_600_000;

/** Numbers in [0, 1) that are the same in each run, the extremes among them. */
function createRandom() {
  let state = 12_345;
  let turn = 0;
  return () => {
    if (turn++ % 7 === 0) return turn % 2 === 0 ? 0 : 0.999_999;
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}

/** Five keys of five events each, at an endpoint that fails, on a clock that goes from one moment to the next. */
async function start() {
  const redis = await connectRedis(redisUrl(), createLogger({ level: 'silent' }));
  onTestFinished(() => redis.close());
  const keys = ['a', 'b', 'c', 'd', 'e'];
  const inbox = await createInbox(redis, {}, keys);
  const refs = await inbox.publish([...keys, ...keys, ...keys, ...keys, ...keys]);
  const random = createRandom();
  /** ref → when each of its attempts began, ms. */
  const begun = new Map<string, number[]>();
  const delivered: string[] = [];
  let turn = 0;
  let works = false;

  /** Claims all that may be, now, and ends it; answers when something is due next. */
  async function attempt(): Promise<number | undefined> {
    const { t } = inbox;
    for (;;) {
      const token = `t${turn++}`;
      const answer = await t.inboxes.claim(inbox.inbox, t.nowMs(), 64, token, LEASE_MS);
      if (answer.answer !== 'OK') throw new Error(answer.answer);
      if (answer.claims.length === 0) return answer.nextMs;
      for (const { lane, ref, attempts } of answer.claims) {
        const times = begun.get(ref) ?? [];
        begun.set(ref, [...times, t.nowMs()]);
        expect(attempts).toBe(times.length % 10);
        const done = { lane, ref, token };
        if (works) {
          delivered.push(ref);
          const record = `delivered ${t.nowMs()} ${attempts + 1} 204 3`;
          await t.inboxes.complete(inbox.inbox, t.nowMs(), [{ ...done, outcome: 'delivered', record }]);
          continue;
        }
        const next = nextAttempt({
          schedule: DEFAULT_RETRY_SCHEDULE_MS,
          failures: attempts + 1,
          randomUnit: random(),
          nowMs: t.nowMs(),
        });
        const record = `dead ${t.nowMs()} ${attempts + 1} 503 3`;
        await t.inboxes.complete(inbox.inbox, t.nowMs(), [
          next === 'dead'
            ? { ...done, outcome: 'dead', record }
            : { ...done, outcome: 'failed', dueMs: next.dueAtMs, attempt: `${t.nowMs()},503,3` },
        ]);
      }
    }
  }
  return {
    ...inbox,
    refs,
    keyOf: (ref: string) => keys[refs.indexOf(ref) % keys.length] as string,
    begun,
    delivered,
    attempt,
    repair: () => void (works = true),
    /** Its owner says that it works: no breaker stands between the schedule and the attempts. */
    vouch: () => inbox.say({ sub: { enabledMs: inbox.t.nowMs() } }),
  };
}

test('the default schedule is that of the kinds, and lasts 75 hours', () => {
  expect(DEFAULT_RETRY_SCHEDULE_MS).toEqual(ENDPOINT_DEFAULTS.retrySchedule.map(parseDurationMs));
  const sumMs = DEFAULT_RETRY_SCHEDULE_MS.reduce((sum, ms) => sum + ms, 0);
  expect(Math.floor(sumMs / HOUR_MS)).toBe(75);
});

test('over all 75 hours no retry is early, and none later than a fifth; then dead letter; recovered, all arrive in order', async () => {
  const it = await start();
  const { t } = it;
  const firstOf = it.refs.slice(0, 5);
  let steps = 0;
  // Until the first event of each key is a dead letter: from there on the next of its key has its turn.
  while (firstOf.some(ref => (it.begun.get(ref)?.length ?? 0) < 10)) {
    const nextMs = await it.attempt();
    if (nextMs === undefined) throw new Error('nothing waits');
    expect(nextMs).toBeGreaterThan(t.nowMs());
    t.clock.ms = nextMs;
    await it.vouch();
    steps++;
  }
  expect(steps).toBeGreaterThan(45);
  for (const ref of firstOf) {
    const times = it.begun.get(ref) as number[];
    expect(times).toHaveLength(10);
    for (const [i, scheduledMs] of DEFAULT_RETRY_SCHEDULE_MS.entries()) {
      const waitedMs = (times[i + 1] as number) - (times[i] as number);
      expect(waitedMs).toBeGreaterThanOrEqual(scheduledMs);
      expect(waitedMs).toBeLessThanOrEqual(scheduledMs * 1.2);
    }
    const tookMs = (times[9] as number) - (times[0] as number);
    expect(tookMs / HOUR_MS).toBeGreaterThanOrEqual(75);
    expect(tookMs / HOUR_MS).toBeLessThanOrEqual(75.6 * 1.2);
    const { event } = (await it.reader.inspect(it.inbox, ref)) as never as { event: { progress: object } };
    expect(event.progress).toMatchObject({ state: 'dead', attempts: 10, reason: '503', history: { length: 10 } });
  }
  expect(await it.count()).toMatchObject({ routed: 25, dead: 5, open: 20 });

  it.repair();
  await it.vouch();
  expect(await it.recovery.recover(it.inbox, { sinceMs: START_MS })).toMatchObject({ answer: 'OK' });
  expect(await it.attempt()).toBeUndefined();
  expect(await it.count()).toMatchObject({ routed: 25, delivered: 25, dead: 0, open: 0 });
  for (const key of ['a', 'b', 'c', 'd', 'e']) {
    expect(it.delivered.filter(ref => it.keyOf(ref) === key)).toEqual(it.refs.filter(ref => it.keyOf(ref) === key));
  }
});
