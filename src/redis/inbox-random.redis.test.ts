import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { redisUrl } from '../../test/support/redis/shared.ts';
import { refMs, refOfStreamId, streamIdOfRef } from '../core/ids/refs.ts';
import { createLogger } from '../telemetry/log.ts';
import { connectRedis, type RedisClient } from './client.ts';
import { createInboxOperations } from './inbox-operations.ts';
import { type Completion, replayOf } from './inbox-store.ts';
import { inboxKeys, integrationKeys, queueKeys } from './keys.ts';
import { createReplays } from './replays.ts';
import { createTenant, items, QUEUE, START_MS } from './testing/tenant.ts';

let redis: RedisClient;
beforeAll(async () => {
  redis = await connectRedis(redisUrl(), createLogger({ level: 'silent' }));
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
  { weight: 2, arbitrary: fc.record({ op: fc.constant('skip' as const), n: any }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('skip up to' as const), n: any }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('replay' as const), n: any }) },
);
type Operation = {
  readonly op:
    | 'accept'
    | 'route'
    | 'claim'
    | 'end'
    | 'activate'
    | 'pause'
    | 'expire'
    | 'skip'
    | 'skip up to'
    | 'replay';
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
  /** By name (`ref`, or `ref:replay`) → key of its lane. */
  const open = new Map<string, string>();
  let [replayed, skipped] = [0, 0];
  const dueMs = new Map<string, number>();
  const flight: { lane: string; ref: string; token: string; untilMs: number }[] = [];
  let [cursor, seq, turn, live] = [0, 0, 0, true];
  const trimmed = new Set<string>();

  const say = async (to: boolean) => {
    live = to;
    const args = ['route', to ? 'open' : 'paused', 'send', to ? 'open' : 'held'];
    await t.control.patch(1, [{ meta, ops: [{ command: 'HSET', key: sub(inbox.sub), args }] }]);
  };
  const refOf = (name: string) => name.slice(0, 15);
  const nameOf = (lane: string, ref: string) => (replayOf(lane) === undefined ? ref : `${ref}:${replayOf(lane)}`);
  const groupOf = (name: string) => (open.get(name) as string).split('\x01')[0] as string;
  const laneOf = (name: string) => (unordered ? `${open.get(name)}\0${refOf(name)}` : (open.get(name) as string));
  const headOf = (lane: string) => [...open.keys()].filter(name => laneOf(name) === lane).toSorted()[0];
  const lower = async () => {};
  const owner = createInboxOperations({ redis, nowMs: t.nowMs, lower });
  const replays = createReplays({ redis, nowMs: t.nowMs, lowerInboxes: lower, lowerAccounts: lower });
  await t.control.setAccount(1, `${t.account}own`, 'Metered', 0);

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
      const name = nameOf(lane, ref);
      expect(active.has(groupOf(name))).toBe(true);
      expect(headOf(lane)).toBe(name);
      expect(t.nowMs()).toBeGreaterThanOrEqual(dueMs.get(name) ?? 0);
      const held = flight.filter(each => each.lane === lane && each.untilMs > t.nowMs());
      expect(held).toEqual([]);
      flight.push({ lane, ref, token, untilMs: t.nowMs() + LEASE_MS });
    }
    const now = new Set(
      flight.filter(each => each.untilMs > t.nowMs() && open.has(nameOf(each.lane, each.ref))).map(({ lane }) => lane),
    );
    expect(now.size).toBeLessThanOrEqual(CAP);
  }

  async function end(n: number): Promise<void> {
    const [attempt] = flight.splice(n % flight.length, 1);
    const { lane, ref, token, untilMs } = attempt as (typeof flight)[number];
    if (n % 11 === 0) return; // Its dispatcher died.
    const outcome = (['delivered', 'delivered', 'failed', 'failed', 'dead', 'released'] as const)[
      n % 6
    ] as Completion['outcome'];
    const name = nameOf(lane, ref);
    const wasOpen = open.has(name);
    const due = t.nowMs() + 5_000;
    const {
      answers: [word],
    } = await t.inboxes.complete(inbox, t.nowMs(), [{ lane, ref, token, outcome, dueMs: due, record: outcome }]);
    if (!wasOpen) expect(word).toBe('GONE');
    else if (outcome === 'delivered' || untilMs > t.nowMs()) expect(word).toBe('OK');
    if (word !== 'OK') return;
    if (outcome === 'failed') dueMs.set(name, due);
    if (outcome === 'delivered' || outcome === 'dead') open.delete(name);
  }

  async function expire(): Promise<void> {
    const cutMs = t.nowMs() - 12_000;
    for (let more = true; more; ) ({ more } = await t.inboxes.expire(inbox, t.nowMs(), `${cutMs}-0`));
    for (const ref of routed) if (refMs(ref) < cutMs) trimmed.add(ref);
    for (const name of open.keys()) if (trimmed.has(refOf(name))) open.delete(name);
  }

  /** Any delivery, open or not: a skip of what ended says so, and changes nothing. */
  async function skip(n: number): Promise<void> {
    const names = [...new Set([...routed, ...open.keys()])];
    const name = names[n % names.length] as string;
    const wasOpen = open.delete(name);
    const word = await owner.skip(inbox, { ref: refOf(name), replayId: name.slice(16) || undefined });
    expect(word === 'OK').toBe(wasOpen);
    if (wasOpen) skipped++;
  }

  async function skipUpTo(n: number): Promise<void> {
    const upTo = [...routed][n % routed.size] as string;
    const groupKey = n % 2 === 0 ? (KEYS[n % KEYS.length] as string) : undefined;
    const answer = await owner.skipUpTo(inbox, upTo, { groupKey });
    const named = [...open].filter(([name, key]) => name <= upTo && !key.includes('\x01'));
    const hit = named.filter(([, key]) => groupKey === undefined || key === groupKey);
    for (const [name] of hit) open.delete(name);
    expect(answer).toEqual({ answer: 'OK', skipped: hit.length, cursor: undefined });
    skipped += hit.length;
  }

  /** Charged and taken if its first delivery has ended, and it may be sent. */
  async function replay(n: number): Promise<void> {
    const ref = [...routed][n % routed.size] as string;
    const key = (queue.find(({ id }) => refOfStreamId(id) === ref) as (typeof queue)[number]).groupKey;
    const name = `${ref}:r${turn++}`;
    const events = queueKeys(t.tenant, QUEUE, 'gen1').events;
    await redis.call('del', events);
    await redis.call('xadd', events, streamIdOfRef(ref), 'g', key, 's', 1);
    const answer = await replays.start(`${t.account}own`, name.slice(16), inbox, { ref });
    const may = live && active.has(key) && !open.has(ref) && !trimmed.has(ref);
    expect(answer.answer === 'OK').toBe(may);
    if (!may) return;
    open.set(name, `${key}\x01${name.slice(16)}`);
    replayed++;
  }

  async function toggle(groupKey: string): Promise<void> {
    if (active.delete(groupKey)) return t.deactivate('x', groupKey);
    active.set(groupKey, t.nowMs());
    await t.activate('x', groupKey, t.nowMs());
  }

  /** What Redis holds is what the model holds; and nothing that was routed is lost (invariant 13). */
  async function compare(): Promise<void> {
    const members = (await redis.call('zrange', x.pending, 0, -1)) as string[];
    expect(new Set(members.map(member => nameOf(member, member.slice(-15))))).toEqual(new Set(open.keys()));
    const fields = await redis.readHash(sub(inbox.sub));
    const count = (name: string) => Number(fields[`n:${name}`] ?? 0);
    expect(count('routed')).toBe(routed.size);
    expect([count('replayed'), count('skipped')]).toEqual([replayed, skipped]);
    const ended = count('delivered') + count('dead') + count('skipped') + count('expired');
    expect(routed.size + replayed).toBe(members.length + ended);
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
    else if (op === 'skip' && routed.size > 0) await skip(n);
    else if (op === 'skip up to' && routed.size > 0) await skipUpTo(n);
    else if (op === 'replay' && routed.size > 0) await replay(n);
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
    for (const { lane, ref } of done) open.delete(nameOf(lane, ref));
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
