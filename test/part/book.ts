import { expect } from 'vitest';
import type { Claim } from '../../src/part/claims/message.ts';
import { createPartTrafficReader } from '../../src/part/reasons/traffic-reader.ts';
import type { RedisClient } from '../../src/redis/client.ts';
import type { TestPart } from '../support/part/part.ts';

export const SUBS = { a: { cap: 2 }, b: { cap: 50 }, u: { cap: 3, unordered: true } } as const;
export type Sub = keyof typeof SUBS;
export const NAMES = Object.keys(SUBS) as Sub[];
export const KEYS = ['k', 'l', 'm'];

/** Tracks the expected state of a history: the receiving subscriptions of each event, open events, and ended events. */
export function createBook(t: TestPart, redis: RedisClient) {
  const nameOf = new Map(NAMES.map(name => [t.slot(name), name]));
  const live = new Set<Sub>(NAMES);
  const sending = new Set<Sub>(NAMES);
  /** `sub key` → last ref before it was activated. */
  const active = new Map<string, string>(NAMES.flatMap(name => KEYS.map(key => [`${name} ${key}`, ''] as const)));
  /** Events since a subscription was paused. Absent if the subscription is live. */
  const behind = new Map<Sub, string[]>();
  const events = new Map<string, { groupKey: string; tokens: number }>();
  /** `sub ref` → group key. */
  const open = new Map<string, string>();
  const ended = new Map<string, number>();
  const dueMs = new Map<string, number>();
  const seen: string[] = [];
  /** Events skipped by subscriptions that have not been counted yet. */
  const skipped: { name: Sub; ref: string }[] = [];
  const missed = { not_activated: 0, skipped_to_now: 0 };
  const counts = { routed: 0, unrouted: 0 };

  const groupOf = (claim: Claim) => claim.lane.slice(8).split('\0')[0] as string;

  /** Checks that a claim is allowed, in order, and not too early. This must be true for every caller. */
  function checkClaim(claim: Claim, nowMs: number): void {
    const name = nameOf.get(claim.slot) as Sub;
    const groupKey = groupOf(claim);
    const id = `${name} ${claim.ref}`;
    expect(open.get(id), `${id} is open`).toBe(groupKey);
    expect(sending.has(name), `${name} can be sent to`).toBe(true);
    expect(active.has(`${name} ${groupKey}`), `${name} ${groupKey} is active`).toBe(true);
    expect(nowMs).toBeGreaterThanOrEqual(dueMs.get(id) ?? 0);
    const earlier = [...open].filter(([other, key]) => other.startsWith(`${name} `) && key === groupKey && other < id);
    if (name !== 'u') expect(earlier, `no event precedes ${id}`).toEqual([]);
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
    counts.routed += tokens;
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
    expect(Number(used)).toBe(counts.routed);
    const minutes = out.split(';').slice(1);
    expect(minutes.reduce((sum, minute) => sum + Number(minute.split(' ')[3]), 0)).toBe(counts.unrouted);
    await checkReasons();
    const log = await t.log();
    const [late] = (await redis.runBuffers('hashes', [t.keys.late], [])) as [Buffer[]];
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

  return {
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
  };
}
