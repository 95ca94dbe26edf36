import type { Argument, RedisClient, Reply } from './client.ts';
import { bucketOf, queueKeys, tenantKeys } from './keys.ts';

/** One event as the router sees it: never its body. */
export interface QueueEntry {
  /** Stream id `ms-seq`. */
  readonly id: string;
  /** Empty when the event has none. */
  readonly groupKey: string;
  readonly bytes: number;
}

export interface QueuePage {
  readonly cursor: string;
  readonly entries: readonly QueueEntry[];
  /** Subscriptions (`int/sub.inc`) that the cursor left behind, with the position of each. */
  readonly behind: ReadonlyMap<string, string>;
  /** Who can be caught up now: a subscription each, and once more each time that it opened (see `wakeEntry`). */
  readonly wake: readonly string[];
  /** Id of the queue's oldest event, routed or not; undefined when it has none. */
  readonly oldestId: string | undefined;
  /** As it is now: it may change while a router owns the queue. */
  readonly retentionMs: number;
}

/** What a routed batch is accounted for with, in the step that moves the position. */
export interface Account {
  readonly counters: ReadonlyMap<string, number>;
  /** ref, accepted ms → why subscribed integrations did not get it, as `tellReasons` writes it. */
  readonly why: readonly { readonly ref: string; readonly ms: number; readonly text: string }[];
}

/** The end of a batch of the main pass. */
export interface BatchResult extends Account {
  readonly from: string;
  readonly to: string;
  /** Subscriptions that did not take their part: their position stays at `from`. */
  readonly behind: readonly string[];
  /** Those of them that the router tries again by itself. */
  readonly wake: readonly string[];
}

/** The end of a batch of the catch-up. */
export interface CatchUpResult extends Account {
  readonly moved: readonly { readonly sub: string; readonly from: string; readonly to: string }[];
  /** Entries of `wake` that are dealt with: joined, or still paused and not tried again before they are woken anew. */
  readonly woken: readonly string[];
}

/**
 * An entry of `wake`: the subscription (`int/sub.inc`), and what tells this waking from every other. Without it, a
 * subscription that opens between the answer PAUSED and the removal of its entry would never be woken again.
 */
export function wakeEntry(member: string, unique: string): string {
  return `${member}#${unique}`;
}

/** The subscription of an entry of `wake`. */
export function wokenMember(entry: string): string {
  const end = entry.indexOf('#');
  return end < 0 ? entry : entry.slice(0, end);
}

export type Ownership =
  | { readonly answer: 'OK'; readonly epoch: number; readonly gen: string }
  | { readonly answer: 'HELD'; readonly untilMs: number }
  /** CLOSED: its control state is missing; GONE: the tenant's says that there is no such queue. */
  | { readonly answer: 'CLOSED' }
  | { readonly answer: 'GONE' };

export type Refusal = 'FENCED' | 'MOVED' | 'REGEN' | 'CLOSED';

export interface Lookup {
  /** Account that pays (`acc_…`). */
  readonly payer: string;
  /** False for an account that enforces its included tokens, and for one whose plan is not known. */
  readonly metered: boolean;
  /** integration → `sub.inc`, of every subscription of the queue, covered ones too. */
  readonly subscriptions: ReadonlyMap<string, string>;
  /** group key → integrations that it is active for (a superset once a change is answered); others may be named too. */
  readonly gates: ReadonlyMap<string, ReadonlySet<string>>;
}

export interface Trimmed {
  readonly more: boolean;
  /** References that were never made: subscriptions times events that they had not got. */
  readonly neverRouted: number;
}

export interface QueueRef {
  readonly tenant: string;
  readonly queue: string;
}

export interface OwnedQueue extends QueueRef {
  readonly epoch: number;
  readonly gen: string;
}

/** How long an owner may be silent before another router takes its queue over. */
export const OWNER_LEASE_MS = 5_000;

/** The router's operations on a queue. Every write is fenced by the epoch that `own` gave. */
export interface QueueStore {
  readonly own: (queue: QueueRef, nowMs: number, owner: string) => Promise<Ownership>;
  /** Commits `result` (if any), then reads on from the persisted cursor. */
  readonly next: (
    queue: OwnedQueue,
    nowMs: number,
    limit: number,
    result?: BatchResult,
  ) => Promise<QueuePage | Refusal>;
  /** Commits `result` (if any), then reads (from, cursor]. */
  readonly catchUp: (
    queue: OwnedQueue,
    nowMs: number,
    limit: number,
    from: string | undefined,
    result?: CatchUpResult,
  ) => Promise<Omit<QueuePage, 'oldestId' | 'retentionMs'> | Refusal>;
  /** `undefined`: the tenant's control state is missing (closed). */
  readonly lookup: (queue: QueueRef, groupKeys: readonly string[]) => Promise<Lookup | undefined>;
  /**
   * Removes up to 1,000 events before `cut`. What was never routed is counted for each of the queue's `subscriptions`
   * (`int/sub.inc`) that had not got it.
   */
  readonly trim: (
    queue: OwnedQueue,
    nowMs: number,
    cut: string,
    subscriptions: readonly string[],
  ) => Promise<Trimmed | 'FENCED'>;
  /**
   * Gives the queue back, so that any router may own it at once. The caller leaves its hint due. `read`: it found no
   * events, and only waits for somebody to be caught up; false when there are some by now, and it was not given back.
   */
  readonly release: (queue: OwnedQueue, read?: boolean) => Promise<boolean>;
}

function pairs(flat: Reply): Map<string, string> {
  const list = flat as string[];
  const map = new Map<string, string>();
  for (let i = 0; i < list.length; i += 2) map.set(list[i] as string, list[i + 1] as string);
  return map;
}

/** (id, group key, bytes)* as `lib/entries.lua` makes it. */
function parseEntries(text: string): QueueEntry[] {
  const list = text === '' ? [] : text.split('\n');
  const entries: QueueEntry[] = [];
  for (let i = 0; i < list.length; i += 3) {
    entries.push({ id: list[i] as string, groupKey: list[i + 1] as string, bytes: Number(list[i + 2]) });
  }
  return entries;
}

/** What a line of `lookup` names. */
function integrationsOf(line: string | undefined): Set<string> {
  return new Set(line ? line.split(' ') : []);
}

const HOUR_MS = 3_600_000;

/** Appends what `lib/account.lua` reads; adds the keys of the reasons' buckets. */
function pushAccount(keys: string[], args: Argument[], keyOf: (bucket: number) => string, account?: Account): void {
  args.push(account?.counters.size ?? 0, account?.why.length ?? 0);
  for (const [name, by] of account?.counters ?? []) args.push(name, by);
  const buckets = new Map<number, number>();
  for (const { ref, ms, text } of account?.why ?? []) {
    const bucket = bucketOf(ms);
    let index = buckets.get(bucket);
    if (index === undefined) {
      index = keys.push(keyOf(bucket));
      buckets.set(bucket, index);
    }
    args.push(index, ref, text);
  }
}

export function createQueueStore(redis: RedisClient): QueueStore {
  return {
    async own({ tenant, queue }, nowMs, owner) {
      const reply = (await redis.run(
        'own',
        [queueKeys(tenant, queue).meta],
        [nowMs, owner, OWNER_LEASE_MS],
      )) as string[];
      const [answer, a, b] = reply as [string, string, string];
      if (answer === 'OK') return { answer, epoch: Number(a), gen: b };
      if (answer === 'HELD') return { answer, untilMs: Number(a) };
      const t = tenantKeys(tenant);
      const [ready, known] = await Promise.all([
        redis.call('hget', t.meta, 'ready'),
        redis.call('hexists', t.index, `q:${queue}`),
      ]);
      return { answer: ready === '1' && known === 0 ? 'GONE' : 'CLOSED' };
    },

    async next({ tenant, queue, gen, epoch }, nowMs, limit, result) {
      const of = queueKeys(tenant, queue, gen);
      const keys = [of.meta, of.events, of.behind, of.wake, of.traffic(Math.floor(nowMs / HOUR_MS))];
      const args: Argument[] = [nowMs, epoch, gen, OWNER_LEASE_MS, limit, result?.from ?? '', result?.to ?? ''];
      args.push(
        result?.behind.length ?? 0,
        result?.wake.length ?? 0,
        ...(result?.behind ?? []),
        ...(result?.wake ?? []),
      );
      pushAccount(keys, args, of.why, result);
      const reply = await redis.run('next', keys, args);
      const [answer, cursor, entries, behindNow, wakeNow, oldest, retentionMs] = reply as Reply[];
      if (answer !== 'OK') return answer as Refusal;
      return {
        cursor: cursor as string,
        entries: parseEntries(entries as string),
        behind: pairs(behindNow as Reply),
        wake: wakeNow as string[],
        oldestId: oldest === '' ? undefined : (oldest as string),
        retentionMs: Number(retentionMs),
      };
    },

    async catchUp({ tenant, queue, gen, epoch }, nowMs, limit, from, result) {
      const of = queueKeys(tenant, queue, gen);
      const keys = [of.meta, of.events, of.behind, of.wake, of.traffic(Math.floor(nowMs / HOUR_MS))];
      const args: Argument[] = [nowMs, epoch, gen, OWNER_LEASE_MS, limit, from ?? ''];
      args.push(result?.moved.length ?? 0, result?.woken.length ?? 0);
      for (const each of result?.moved ?? []) args.push(each.sub, each.from, each.to);
      args.push(...(result?.woken ?? []));
      pushAccount(keys, args, of.why, result);
      const reply = await redis.run('catchup', keys, args);
      const [answer, cursor, entries, behind, wake] = reply as Reply[];
      if (answer !== 'OK') return answer as Refusal;
      return {
        cursor: cursor as string,
        entries: parseEntries(entries as string),
        behind: pairs(behind as Reply),
        wake: wake as string[],
      };
    },

    async lookup({ tenant, queue }, groupKeys) {
      const of = tenantKeys(tenant);
      const reply = (await redis.run('lookup', [of.meta, of.gates, of.subs(queue)], groupKeys)) as Reply[];
      const [answer, payer, plan, subscriptions, gates] = reply;
      if (answer !== 'OK') return undefined;
      const lines = (gates as string).split('\n');
      return {
        payer: payer as string,
        metered: plan === 'Metered',
        subscriptions: pairs(subscriptions as Reply),
        gates: new Map(groupKeys.map((key, i) => [key, integrationsOf(lines[i])])),
      };
    },

    async trim({ tenant, queue, gen, epoch }, nowMs, cut, subscriptions) {
      const of = queueKeys(tenant, queue, gen);
      const [answer, , neverRouted] = (await redis.run(
        'trim',
        [of.meta, of.events, of.bodies, of.behind, of.expired, of.traffic(Math.floor(nowMs / HOUR_MS))],
        [epoch, cut, nowMs, ...subscriptions],
      )) as [string, number, number];
      return answer === 'FENCED' ? 'FENCED' : { more: answer === 'MORE', neverRouted };
    },

    async release({ tenant, queue, gen, epoch }, read = false) {
      const of = queueKeys(tenant, queue, gen);
      return (await redis.run('release', [of.meta, of.events], [epoch, read ? 1 : 0])) !== 'WORK';
    },
  };
}
