import { expect } from 'vitest';
import { createExchange } from '../../src/part/claims/exchange.ts';
import type { Claim, Push } from '../../src/part/claims/message.ts';
import { createPartTrafficReader } from '../../src/part/reasons/traffic-reader.ts';
import type { RedisClient } from '../../src/redis/client.ts';
import { createTestPart, event, READY_MS, type TestDispatcher } from '../support/part/part.ts';
import { listenTo } from '../support/part/pushes.ts';

export type Step =
  | 'ingest'
  | 'exchange'
  | 'lose answer'
  | 'lose pushes'
  | 'read pushes'
  | 'end'
  | 'pause'
  | 'advance'
  | 'hold'
  | 'toggle key'
  | 'die'
  | 'evict'
  | 'reclaim'
  | 'wait';

const SUBS = { a: { cap: 2 }, b: { cap: 50 }, u: { cap: 3, unordered: true } } as const;
type Sub = keyof typeof SUBS;
const NAMES = Object.keys(SUBS) as Sub[];
const KEYS = ['k', 'l', 'm'];
const WAITS_MS = [0, 1, 200, 1_000, READY_MS, 10_000];

/** A dispatcher with what is on its way to it. */
interface Process {
  readonly d: TestDispatcher;
  inbox: Push[];
  /** It may hold claims that it does not know of. */
  lacking: boolean;
}

/**
 * Plays one history of a part: two dispatchers, lost pushes and answers, deaths, gates; and knows at each step what has to
 * be so. Everything is in one step after the other, so that what Redis answered is known here also where it is lost there.
 */
export async function startHistory(redis: RedisClient, url: string) {
  const t = createTestPart(redis);
  await t.setUp(SUBS, KEYS);
  const pushes = await listenTo(redis, url, t.part);
  const exchange = createExchange(t.client);
  const nameOf = new Map(NAMES.map(name => [t.slot(name), name]));
  let number = 0;
  const newProcess = (): Process => ({ d: t.dispatcher(`d${number++}`), inbox: [], lacking: false });
  const processes = [newProcess(), newProcess()];
  const dead = new Set<string>();

  const live = new Set<Sub>(NAMES);
  const sending = new Set<Sub>(NAMES);
  /** `sub key` → last ref before it was activated. */
  const active = new Map<string, string>(NAMES.flatMap(name => KEYS.map(key => [`${name} ${key}`, ''] as const)));
  /** Events that came since a subscription was paused; absent for one that is live. */
  const behind = new Map<Sub, string[]>();
  const events = new Map<string, { groupKey: string; tokens: number }>();
  /** `sub ref` → group key. */
  const open = new Map<string, string>();
  const ended = new Map<string, number>();
  const dueMs = new Map<string, number>();
  const seen: string[] = [];
  /** What subscriptions skipped and nothing counted yet. */
  const skipped: { name: Sub; ref: string }[] = [];
  const missed = { not_activated: 0, skipped_to_now: 0 };
  let unrouted = 0;
  let routed = 0;
  let sender = 0;

  const groupOf = (claim: Claim) => claim.lane.slice(8).split('\0')[0] as string;

  /** Whatever claimed this: it was allowed, its turn, and not early. */
  function checkClaim(claim: Claim, nowMs: number): void {
    const name = nameOf.get(claim.slot) as Sub;
    const groupKey = groupOf(claim);
    const id = `${name} ${claim.ref}`;
    expect(open.get(id), `${id} is open`).toBe(groupKey);
    expect(sending.has(name), `${name} is sent to`).toBe(true);
    expect(active.has(`${name} ${groupKey}`), `${name} ${groupKey} is active`).toBe(true);
    expect(nowMs).toBeGreaterThanOrEqual(dueMs.get(id) ?? 0);
    const earlier = [...open].filter(([other, key]) => other.startsWith(`${name} `) && key === groupKey && other < id);
    if (name !== 'u') expect(earlier, `nothing comes before ${id}`).toEqual([]);
  }

  /** Pushes that were sent: each process has them on its way. */
  async function deliverPushes(): Promise<void> {
    for (const push of await pushes.take()) {
      for (const claimed of push.events) for (const claim of claimed.claims) checkClaim(claim, push.nowMs);
      for (const process of processes) process.inbox.push(push);
    }
  }

  function readPushes(process: Process): void {
    const { d } = process;
    for (const push of process.inbox.splice(0)) {
      if (push.dispatcher !== d.name) continue;
      const claims = d.take(push.events);
      if (d.counts.pushed + claims.length !== push.pushed) process.lacking = true;
      d.counts.pushed = push.pushed;
      d.counts.bytes = push.bytes;
    }
  }

  function isFor(name: Sub, ref: string): boolean {
    const since = active.get(`${name} ${events.get(ref)?.groupKey}`);
    return since !== undefined && since < ref;
  }

  function route(name: Sub, ref: string): void {
    const { groupKey, tokens } = events.get(ref) as { groupKey: string; tokens: number };
    if (!isFor(name, ref)) {
      missed.not_activated++;
      return;
    }
    open.set(`${name} ${ref}`, groupKey);
    routed += tokens;
  }

  /** Who is sent to again gets what came meanwhile, as far as it may. */
  async function advance(): Promise<void> {
    const before = open.size;
    for (const [name, refs] of behind) {
      if (!live.has(name)) continue;
      for (const ref of refs) route(name, ref);
      behind.delete(name);
    }
    const added = open.size - before;
    for (const { name, ref } of skipped.splice(0)) missed[isFor(name, ref) ? 'skipped_to_now' : 'not_activated']++;
    expect(await t.advanceAll()).toBe(added);
    await deliverPushes();
  }

  async function ingest(n: number): Promise<void> {
    const given = Array.from({ length: 1 + (n % 4) }, (_, i) => {
      const groupKey = KEYS[(n + i * 7) % KEYS.length] as string;
      const body = Buffer.alloc((n + i) % 5 === 0 ? 16_385 : 10);
      // Some are sent a second time.
      return event(groupKey, (n + i) % 3 === 0 ? { body } : { body, senderId: `s${(n + i) % 2 ? sender++ : sender}` });
    });
    const answer = await t.ingest(...given);
    if (answer.answer !== 'OK') throw new Error(answer.answer);
    for (const [i, outcome] of answer.events.entries()) {
      if (!('ref' in outcome)) throw new Error(outcome.answer);
      expect(seen.includes(outcome.ref)).toBe(outcome.answer === 'DUP');
      if (outcome.answer === 'DUP') continue;
      seen.push(outcome.ref);
      const { groupKey, body } = given[i] as (typeof given)[0];
      events.set(outcome.ref, { groupKey, tokens: Math.ceil(body.length / 16_384) });
      if (!NAMES.some(name => isFor(name, outcome.ref))) unrouted++;
      for (const name of NAMES) {
        if (behind.has(name)) behind.get(name)?.push(outcome.ref);
        else route(name, outcome.ref);
      }
    }
    await deliverPushes();
  }

  async function exchangeOnce(process: Process, most: number, lost: boolean): Promise<void> {
    const { d } = process;
    const holding = d.holding();
    const completions = d.ended.splice(0);
    const before = new Map(d.held);
    const answer = await exchange(t.part, holding, completions, most);
    if (answer.answer === 'GONE') throw new Error('GONE');
    for (const [i, { lane, ref, outcome, dueMs: at }] of completions.entries()) {
      const id = `${nameOf.get(lane.slice(0, 8))} ${ref}`;
      if (answer.answers[i] !== 'done') continue;
      expect(open.has(id), `${id} was open`).toBe(true);
      if (outcome === 'delivered' || outcome === 'dead') {
        open.delete(id);
        ended.set(id, (ended.get(id) ?? 0) + 1);
      }
      if (outcome === 'failed') dueMs.set(id, at as number);
    }
    for (const claimed of answer.events) for (const claim of claimed.claims) checkClaim(claim, answer.nowMs);
    if (lost) {
      d.held.clear();
      for (const [lane, claim] of before) d.held.set(lane, claim);
      d.ended.unshift(...completions);
      process.lacking = true;
      return;
    }
    d.take(answer.events);
    await deliverPushes();
    readPushes(process);
    if (answer.pushed !== d.counts.pushed) process.lacking = true;
    d.counts.pushed = answer.pushed;
    d.counts.bytes = answer.bytes;
    for (const name of answer.lapsed) dead.add(name);
  }

  /** Compares its list with what Redis holds for it; gives back what it does not know. */
  async function reclaim(process: Process): Promise<void> {
    const { d } = process;
    const own = await t.own(d.name);
    await deliverPushes();
    readPushes(process);
    for (const { lane, ref } of own) {
      const known = d.held.get(lane)?.ref === ref || d.ended.some(each => each.lane === lane && each.ref === ref);
      if (!known) d.ended.push({ lane, ref, outcome: 'released', reason: 'unread' });
    }
    for (const [lane, claim] of d.held) {
      if (!own.some(each => each.lane === lane && each.ref === claim.ref)) d.held.delete(lane);
    }
    process.lacking = false;
  }

  function end(process: Process, n: number): void {
    const claims = [...process.d.held.values()];
    const claim = claims[n % claims.length];
    if (claim === undefined) return;
    const outcome =
      (['delivered', 'delivered', 'failed', 'dead', 'released', 'delivered'] as const)[n % 6] ?? 'delivered';
    const at = t.clock.ms + (n % 4) * 400;
    process.d.end(claim, outcome, outcome === 'failed' ? { dueMs: at, reason: '500' } : {});
  }

  async function setRow(name: Sub, skip = false): Promise<void> {
    const row = {
      ...SUBS[name],
      route: live.has(name) ? 'open' : 'paused',
      send: sending.has(name) ? 'open' : 'held',
    } as const;
    const skips = live.has(name) && skip;
    await t.setRow(name, row, skips ? 'skip' : undefined);
    if (!live.has(name) && !behind.has(name)) behind.set(name, []);
    if (skips) skipped.push(...(behind.get(name) ?? []).map(ref => ({ name, ref })));
    if (skips || (live.has(name) && behind.get(name)?.length === 0)) behind.delete(name);
    await deliverPushes();
  }

  async function toggle<T>(set: Set<T>, value: T, then: () => Promise<unknown>): Promise<void> {
    if (!set.delete(value)) set.add(value);
    await then();
    await deliverPushes();
  }

  async function toggleKey(name: Sub, groupKey: string): Promise<void> {
    const id = `${name} ${groupKey}`;
    if (active.delete(id)) await t.deactivate(name, groupKey);
    else active.set(id, (await t.activate(name, groupKey)).tail);
    await deliverPushes();
  }

  async function evictDead(): Promise<void> {
    for (const name of dead) {
      const { answer } = await t.evict(name);
      if (answer === 'OK') dead.delete(name);
    }
    await deliverPushes();
  }

  async function step(kind: Step, n: number): Promise<void> {
    const process = processes[n % processes.length] as Process;
    const name = NAMES[n % NAMES.length] as Sub;
    const groupKey = KEYS[(n >> 2) % KEYS.length] as string;
    if (kind === 'ingest') await ingest(n);
    else if (kind === 'exchange') await exchangeOnce(process, 1 + (n % 6), false);
    else if (kind === 'lose answer') await exchangeOnce(process, 4, true);
    else if (kind === 'lose pushes') process.inbox.length = 0;
    else if (kind === 'read pushes') readPushes(process);
    else if (kind === 'end') end(process, n);
    else if (kind === 'pause') await toggle(live, name, () => setRow(name, n % 5 === 0));
    else if (kind === 'advance') await advance();
    else if (kind === 'hold') await toggle(sending, name, () => setRow(name));
    else if (kind === 'toggle key') {
      await toggleKey(name, groupKey);
    } else if (kind === 'die') {
      dead.add(process.d.name);
      processes[n % processes.length] = newProcess();
    } else if (kind === 'evict') await evictDead();
    else if (kind === 'reclaim') await reclaim(process);
    else t.clock.ms += WAITS_MS[n % WAITS_MS.length] as number;
  }

  /** Everything opens, nobody dies and nothing is lost from here on: then nothing may be left. */
  async function finish(): Promise<void> {
    for (const name of NAMES) {
      live.add(name);
      sending.add(name);
      await setRow(name);
      for (const key of KEYS) if (!active.has(`${name} ${key}`)) await toggleKey(name, key);
    }
    await advance();
    t.clock.ms += READY_MS;
    for (const process of processes) await exchangeOnce(process, 0, false);
    await evictDead();
    for (let round = 0; open.size > 0; round++) {
      expect(round, `${open.size} events are left: ${[...open.keys()].slice(0, 3).join(', ')}`).toBeLessThan(200);
      t.clock.ms += 1_000;
      for (const process of processes) {
        readPushes(process);
        if (process.lacking) await reclaim(process);
        for (const claim of Array.from(process.d.held.values())) process.d.end(claim);
        await exchangeOnce(process, 64, false);
      }
    }
    for (const process of processes) {
      await reclaim(process);
      await exchangeOnce(process, 0, false);
    }
    await checkEmpty();
  }

  async function checkReasons(): Promise<void> {
    const hours = await createPartTrafficReader(redis).readReasons(t.part.tenant, t.part.queue, '7d', t.clock.ms);
    const sum = (reason: keyof typeof missed) => hours.reduce((total, { reasons }) => total + reasons[reason], 0);
    expect({ not_activated: sum('not_activated'), skipped_to_now: sum('skipped_to_now') }).toEqual(missed);
  }

  async function checkEmpty(): Promise<void> {
    const { claims, lanes, pending, waiting, tries, off, positions } = t.keys;
    for (const key of [claims, lanes, pending, waiting, tries, off, positions]) {
      expect(await redis.call('exists', key), key).toBe(0);
    }
    let total = 0;
    for (const name of NAMES) {
      const [flight, count, , delivered, dying, expired] = (await t.counts(name)) as [
        number,
        number,
        number,
        number,
        number,
        number,
      ];
      expect([name, flight]).toEqual([name, 0]);
      expect(delivered + dying + expired).toBe(count);
      total += count;
    }
    expect([...ended.values()].filter(times => times !== 1)).toEqual([]);
    expect(ended.size).toBe(total);
    const { used = 0, out = '' } = await t.hash('meta');
    expect(Number(used)).toBe(routed);
    const minutes = out.split(';').slice(1);
    expect(minutes.reduce((sum, minute) => sum + Number(minute.split(' ')[3]), 0)).toBe(unrouted);
    await checkReasons();
    const log = await t.log();
    const late = (await redis.runBuffers('fields', [t.keys.late], [])) as Buffer[];
    const slots =
      log.flatMap(each => each.slots).length + late.filter((_, i) => i % 2).reduce((n, b) => n + b.length, 0) / 5;
    expect(slots).toBe(total);
    for (const ref of seen) {
      const records = (await t.records(ref)).map(({ slot }) => `${nameOf.get(slot)} ${ref}`).toSorted();
      expect(records).toEqual([...ended.keys()].filter(id => id.endsWith(ref)).toSorted());
    }
    const ready = Object.values(await t.hash('ready')).map(text => text.split(' ')[2]);
    expect(ready.filter(held => held !== '0')).toEqual([]);
  }

  return { step, finish, close: pushes.close };
}
