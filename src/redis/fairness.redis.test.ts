import { describe, expect, test } from 'vitest';
import { redisUrl } from '../../test/support/redis/shared.ts';
import { refOfStreamId } from '../core/ids/refs.ts';
import { createLogger } from '../telemetry/log.ts';
import { connectRedis } from './client.ts';
import type { Claim, Completion } from './inbox-store.ts';
import { createTenant, items, START_MS, type SubscriptionShort } from './testing/tenant.ts';

const LEASE_MS = 25_000;

type Held = Claim & { readonly token: string };

/** A subscription without order: each event is a lane of its own. */
async function start(sub: SubscriptionShort = {}) {
  const redis = await connectRedis(redisUrl(), createLogger({ level: 'silent' }));
  const t = createTenant(redis);
  await t.apply(t.routes({ x: { sub: { unordered: true, ...sub } } }));
  await t.activate('x', 'key');
  const inbox = t.inboxOf('x');
  let events = 0;
  let turn = 0;
  async function route(count: number): Promise<string[]> {
    const entries = Array.from({ length: count }, () => ({ id: `${START_MS}-${events++}`, groupKey: 'key' }));
    for (let at = 0; at < count; at += 200) {
      await t.inboxes.route(inbox, t.nowMs(), START_MS, 'gen1', 'acc', items(entries.slice(at, at + 200)));
    }
    return entries.map(({ id }) => refOfStreamId(id));
  }
  async function claim(room = 64): Promise<Held[]> {
    const token = `t${turn++}`;
    const answer = await t.inboxes.claim(inbox, t.nowMs(), room, token, LEASE_MS);
    return answer.answer === 'OK' ? answer.claims.map(each => ({ ...each, token })) : [];
  }
  const end = (claims: readonly Held[], outcome: Completion['outcome'], dueMs = 0) =>
    t.inboxes.complete(
      inbox,
      t.nowMs(),
      claims.map(({ lane, ref, token }) => ({ lane, ref, token, outcome, dueMs, record: `${outcome} 1 1 500 1` })),
    );
  /** Lets all that is due fail once, with one that arrives after each turn so that no breaker opens; its retry is at `dueMs`. */
  async function failAll(dueMs: number): Promise<void> {
    for (let claims = await claim(); claims.length > 0; claims = await claim()) {
      const [one, ...others] = claims;
      await end(others, 'failed', dueMs);
      await end([one as Held], 'delivered');
    }
  }
  return { t, inbox, redis, route, claim, end, failAll };
}

describe('first attempts and retries of one subscription', () => {
  test('a new event goes in the next claim, though ten thousand retries are due', async () => {
    const { t, route, claim, failAll, end, redis } = await start({ cap: 100 });
    await route(10_160);
    await failAll(START_MS + 5_000);
    t.clock.ms = START_MS + 5_000;
    const [fresh] = await route(1);
    expect((await claim(1)).map(({ ref }) => ref)).toEqual([fresh]);
    const retries = await claim(1_000);
    expect(retries.every(({ attempts }) => attempts === 1)).toBe(true);
    expect(retries).toHaveLength(64);
    await end(retries, 'failed', START_MS + 300_000);
    const [next] = await route(1);
    expect((await claim()).map(({ ref }) => ref)).toContain(next);
    await redis.close();
  });

  test('retries that hang leave a quarter of the cap to first attempts', async () => {
    const { t, route, claim, failAll, redis } = await start({ cap: 16 });
    await route(40);
    await failAll(START_MS + 5_000);
    t.clock.ms = START_MS + 5_000;
    expect(await claim()).toHaveLength(12);
    expect(await claim()).toEqual([]);
    const fresh = await route(5);
    expect((await claim()).map(({ ref }) => ref)).toEqual(fresh.slice(0, 4));
    await redis.close();
  });

  test('retries are not starved: where first attempts never end, an eighth of those that go are retries', async () => {
    const { t, route, claim, end, failAll, redis } = await start({ cap: 64 });
    await route(200);
    await failAll(START_MS + 5_000);
    t.clock.ms = START_MS + 5_000;
    await route(4_000);
    let [firsts, retries] = [0, 0];
    for (let n = 0; n < 160; n++) {
      const claims = await claim(4);
      retries += claims.filter(({ attempts }) => attempts > 0).length;
      firsts += claims.filter(({ attempts }) => attempts === 0).length;
      await end(claims, 'delivered');
      t.clock.ms += 1;
    }
    expect([firsts, retries]).toEqual([560, 80]);
    await redis.close();
  });

  test('a retry is never claimed early, and the answer says when it is due behind claims that last longer', async () => {
    const { t, inbox, route, claim, end, redis } = await start();
    await route(2);
    const [one] = await claim();
    await end([one as Held], 'failed', START_MS + 5_000);
    const ask = () => t.inboxes.claim(inbox, t.nowMs(), 9, 'x', LEASE_MS);
    expect(await ask()).toMatchObject({ claims: [], nextMs: START_MS + 5_000 });
    t.clock.ms = START_MS + 4_999;
    expect(await ask()).toMatchObject({ claims: [], nextMs: START_MS + 5_000 });
    t.clock.ms += 1;
    expect(await ask()).toMatchObject({ claims: [{ ref: one?.ref, attempts: 1 }], nextMs: START_MS + LEASE_MS });
    await redis.close();
  });
});
