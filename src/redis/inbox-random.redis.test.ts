import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { refMs, refOfStreamId } from '../core/refs.ts';
import { createLogger } from '../telemetry/log.ts';
import { connectRedis, type RedisClient } from './client.ts';
import type { Completion } from './inbox-store.ts';
import { inboxKeys, integrationKeys } from './keys.ts';
import { createTenant, items, START_MS } from './testing/tenant.ts';

let redis: RedisClient;
beforeAll(async () => {
  redis = await connectRedis(inject('redisUrl'), createLogger({ level: 'silent' }));
});
afterAll(() => redis.close());

const KEYS = ['a', 'b', 'ab', 'c'];
const LEASE_MS = 20_000;
const STEPS_MS = [0, 1, 50, 500, 6_000, 25_000];
const CAP = 3;
const any = fc.nat(1_000);
const operation = fc.oneof(
  { weight: 5, arbitrary: fc.record({ op: fc.constant('accept' as const), n: any }) },
  { weight: 4, arbitrary: fc.record({ op: fc.constant('route' as const), n: any }) },
  { weight: 5, arbitrary: fc.record({ op: fc.constant('claim' as const), n: any }) },
  { weight: 6, arbitrary: fc.record({ op: fc.constant('end' as const), n: any }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('activate' as const), n: any }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('pause' as const), n: any }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('expire' as const), n: any }) },
);
type Operation = {
  readonly op: 'accept' | 'route' | 'claim' | 'end' | 'activate' | 'pause' | 'expire';
  readonly n: number;
};

/** The inbox as it has to be: a list of events per key, and what is known of each. */
async function play(operations: readonly Operation[], unordered: boolean): Promise<void> {
  const t = createTenant(redis);
  await t.apply(t.routes({ x: { sub: { cap: CAP, unordered } } }));
  const inbox = t.inboxOf('x');
  const x = inboxKeys(inbox.integration, inbox.sub, inbox.inc);
  const { meta, sub } = integrationKeys(inbox.integration);
  const active = new Map<string, number>();
  const queue: { id: string; groupKey: string }[] = [];
  const routed = new Set<string>();
  const open = new Map<string, string>();
  const dueMs = new Map<string, number>();
  const flight: { lane: string; ref: string; token: string; untilMs: number }[] = [];
  let [cursor, seq, turn, live] = [0, 0, 0, true];
  const trimmed = new Set<string>();

  const say = async (to: boolean) => {
    live = to;
    const args = ['route', to ? 'open' : 'paused', 'send', to ? 'open' : 'held'];
    await t.control.patch(1, [{ meta, ops: [{ command: 'HSET', key: sub(inbox.sub), args }] }]);
  };
  const laneOf = (ref: string) => (unordered ? `${open.get(ref)}\0${ref}` : (open.get(ref) as string));
  const headOf = (lane: string) => [...open.keys()].filter(ref => laneOf(ref) === lane).toSorted()[0];

  async function route(upTo: number, committed: boolean): Promise<void> {
    const batch = queue.slice(cursor, upTo);
    const reply = await t.inboxes.route(inbox, t.nowMs(), START_MS, 'gen1', '', items(batch));
    expect(reply.answer).toBe(live ? 'OK' : 'PAUSED');
    if (reply.answer !== 'OK') return;
    for (const [i, { id, groupKey }] of batch.entries()) {
      const ref = refOfStreamId(id);
      const since = active.get(groupKey);
      const before = [...routed].some(other => other >= ref);
      const young = t.nowMs() - refMs(ref) <= 10_000;
      const passes = !before && since !== undefined && (young || refMs(ref) >= since - 2_000);
      // What retention ended is not told from what never was here: it is in no inbox.
      const here = routed.has(ref) && !trimmed.has(ref);
      expect(reply.flags[i]).toBe(here ? 'd' : passes ? 'r' : 'a');
      if (!passes) continue;
      routed.add(ref);
      open.set(ref, groupKey);
    }
    if (committed) cursor = upTo;
  }

  async function claim(room: number): Promise<void> {
    const token = `t${turn++}`;
    const answer = await t.inboxes.claim(inbox, t.nowMs(), room, token, LEASE_MS);
    expect(answer.answer).toBe(live ? 'OK' : 'PAUSED');
    if (answer.answer !== 'OK') return;
    expect(answer.claims.length).toBeLessThanOrEqual(room);
    for (const { lane, ref } of answer.claims) {
      expect(active.has(open.get(ref) as string)).toBe(true);
      expect(headOf(lane)).toBe(ref);
      expect(t.nowMs()).toBeGreaterThanOrEqual(dueMs.get(ref) ?? 0);
      const held = flight.filter(each => each.lane === lane && each.untilMs > t.nowMs());
      expect(held).toEqual([]);
      flight.push({ lane, ref, token, untilMs: t.nowMs() + LEASE_MS });
    }
    const now = new Set(flight.filter(each => each.untilMs > t.nowMs() && open.has(each.ref)).map(({ lane }) => lane));
    expect(now.size).toBeLessThanOrEqual(CAP);
  }

  async function end(n: number): Promise<void> {
    const [attempt] = flight.splice(n % flight.length, 1);
    const { lane, ref, token, untilMs } = attempt as (typeof flight)[number];
    if (n % 11 === 0) return; // Its dispatcher died.
    const outcome = (['delivered', 'delivered', 'failed', 'failed', 'dead', 'released'] as const)[
      n % 6
    ] as Completion['outcome'];
    const wasOpen = open.has(ref);
    const due = t.nowMs() + 5_000;
    const {
      answers: [word],
    } = await t.inboxes.complete(inbox, t.nowMs(), [{ lane, ref, token, outcome, dueMs: due, record: outcome }]);
    if (!wasOpen) expect(word).toBe('GONE');
    else if (outcome === 'delivered' || untilMs > t.nowMs()) expect(word).toBe('OK');
    if (word !== 'OK') return;
    if (outcome === 'failed') dueMs.set(ref, due);
    if (outcome === 'delivered' || outcome === 'dead') open.delete(ref);
  }

  async function expire(): Promise<void> {
    const cutMs = t.nowMs() - 12_000;
    for (let more = true; more; ) ({ more } = await t.inboxes.expire(inbox, t.nowMs(), `${cutMs}-0`));
    for (const ref of routed) if (refMs(ref) < cutMs) trimmed.add(ref);
    for (const ref of trimmed) open.delete(ref);
  }

  async function toggle(groupKey: string): Promise<void> {
    if (active.delete(groupKey)) return t.deactivate('x', groupKey);
    active.set(groupKey, t.nowMs());
    await t.activate('x', groupKey, t.nowMs());
  }

  /** What Redis holds is what the model holds; and nothing that was routed is lost (invariant 13). */
  async function compare(): Promise<void> {
    const members = (await redis.call('zrange', x.pending, 0, -1)) as string[];
    expect(new Set(members.map(member => member.split('\0')[1]))).toEqual(new Set(open.keys()));
    const fields = await redis.readHash(sub(inbox.sub));
    const count = (name: string) => Number(fields[`n:${name}`] ?? 0);
    expect(count('routed')).toBe(routed.size);
    expect(count('routed')).toBe(members.length + count('delivered') + count('dead') + count('expired'));
  }

  for (const { op, n } of operations) {
    t.clock.ms += STEPS_MS[n % STEPS_MS.length] as number;
    if (op === 'accept') queue.push({ id: `${t.nowMs()}-${seq++}`, groupKey: KEYS[n % KEYS.length] as string });
    else if (op === 'route') await route(Math.min(queue.length, cursor + 1 + (n % 4)), n % 7 !== 0);
    else if (op === 'claim') await claim(1 + (n % 4));
    else if (op === 'end' && flight.length > 0) await end(n);
    else if (op === 'activate') await toggle(KEYS[n % KEYS.length] as string);
    else if (op === 'pause') await say(!live);
    else if (op === 'expire') await expire();
    await compare();
  }

  // In the end everything is open, and nobody dies: then nothing may be left.
  await say(true);
  for (const groupKey of KEYS) if (!active.has(groupKey)) await toggle(groupKey);
  await route(queue.length, true);
  flight.length = 0;
  for (let round = 0; open.size > 0; round++) {
    expect(round).toBeLessThan(100);
    t.clock.ms += LEASE_MS;
    await claim(4);
    const done = flight
      .splice(0)
      .map(({ lane, ref, token }) => ({ lane, ref, token, outcome: 'delivered' as const, record: 'x' }));
    await t.inboxes.complete(inbox, t.nowMs(), done);
    for (const { ref } of done) open.delete(ref);
  }
  await compare();
  await claim(4);
  expect(await redis.call('exists', x.pending, x.due, x.claims, x.tries)).toBe(0);
}

test.each([
  ['ordered', false],
  ['unordered', true],
])(
  'any history of an inbox, %s: conserved, in order, never early, never closed, never stuck',
  async (_name, unordered) => {
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { minLength: 10, maxLength: 70 }), operations =>
        play(operations, unordered),
      ),
      { numRuns: 150, seed: unordered ? 2 : 1 },
    );
  },
);
