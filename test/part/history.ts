import { expect } from 'vitest';
import { createExchange } from '../../src/part/claims/exchange.ts';
import type { Push } from '../../src/part/claims/message.ts';
import type { RedisClient } from '../../src/redis/client.ts';
import { createTestPart, event, READY_MS, type TestDispatcher } from '../support/part/part.ts';
import { listenTo } from '../support/part/pushes.ts';
import { createBook, KEYS, NAMES, SUBS, type Sub } from './book.ts';

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

const WAITS_MS = [0, 1, 200, 1_000, READY_MS, 10_000];

/** A dispatcher, including the data being sent to it. */
interface Process {
  readonly d: TestDispatcher;
  inbox: Push[];
  /** Whether the dispatcher may hold claims that it does not know. */
  lacking: boolean;
}

/**
 * Plays a history of a part with two dispatchers, lost pushes and responses, failed dispatchers, and changes of the
 * gate, and checks the state after each step. Steps are run sequentially, so the test knows each response of Redis even
 * if the dispatcher does not receive it.
 */
export async function startHistory(redis: RedisClient, url: string) {
  const t = createTestPart(redis);
  await t.setUp(SUBS, KEYS);
  const pushes = await listenTo(redis, url, t.part);
  const exchange = createExchange(t.client);
  const {
    nameOf,
    live,
    sending,
    active,
    behind,
    events,
    open,
    ended,
    dueMs,
    seen,
    skipped,
    missed,
    counts,
    checkClaim,
    isFor,
    route,
    checkEmpty,
  } = createBook(t, redis);
  let number = 0;
  const newProcess = (): Process => ({ d: t.dispatcher(`d${number++}`), inbox: [], lacking: false });
  const processes = [newProcess(), newProcess()];
  const dead = new Set<string>();

  let sender = 0;

  /** Delivers the pushes that have been sent to the inbox of each process. */
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

  /** Routes the events of resumed subscriptions that were stored in the meantime, if the gate allows it. */
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
      // Some events have the same sender id as an earlier event.
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
      if (!NAMES.some(name => isFor(name, outcome.ref))) counts.unrouted++;
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

  /** Compares the claims of a process with its claims in Redis, and releases those that the process does not know. */
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

  /** Opens all gates, and expects that all events are delivered if no dispatcher fails and nothing is lost. */
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
      expect(
        round,
        `${open.size} events have not been delivered: ${[...open.keys()].slice(0, 3).join(', ')}`,
      ).toBeLessThan(200);
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

  return { step, finish, close: pushes.close };
}
