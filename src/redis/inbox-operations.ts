import { type EventMeta, parseEventMeta } from '../core/events/event-meta.ts';
import type { EventState } from '../core/events/event-state.ts';
import { isRef, refMs, streamIdOfRef } from '../core/ids/refs.ts';
import type { Argument, RedisClient } from './client.ts';
import type { HintIndex } from './hints.ts';
import type { Permission } from './inbox-reader.ts';
import { createInboxStore, type InboxRef, inboxMember, isReplayId, RECORD_TTL_MS, replayOf } from './inbox-store.ts';
import { bucketOf, inboxKeys, integrationKeys } from './keys.ts';

/** One delivery: an event's first, or one of its replays. */
export interface DeliveryRef {
  readonly ref: string;
  readonly replayId?: string | undefined;
}

/** OK: ended now; an outcome: it had ended so before; UNKNOWN: it never was here, or its record is too old. */
export type FinishAnswer = 'OK' | 'UNKNOWN' | Extract<EventState, 'delivered' | 'dead' | 'skipped' | 'expired'>;

export interface PulledEvent extends DeliveryRef {
  readonly groupKey: string;
  readonly meta: EventMeta;
  readonly body: Buffer;
}

/** What an integration does to its own inbox. Everything is free, and may be repeated. */
export interface InboxOperations {
  /** Ends one open event undelivered. A skip during an attempt wins, whatever that brings. GONE: no such subscription. */
  readonly skip: (inbox: InboxRef, delivery: DeliveryRef) => Promise<FinishAnswer | 'GONE'>;
  /**
   * Skips first deliveries that are open, up to and with `ref`, of one group key if one is given. Looks at 200 a call:
   * to be called again with the cursor while it gives one.
   */
  readonly skipUpTo: (
    inbox: InboxRef,
    ref: string,
    options?: { readonly groupKey?: string | undefined; readonly cursor?: string | undefined },
  ) => Promise<
    | { readonly answer: 'OK'; readonly skipped: number; readonly cursor: string | undefined }
    | { readonly answer: 'GONE' | 'BAD_CURSOR' | 'BAD_REF' }
  >;
  /**
   * Acknowledges up to 250 deliveries, in any order: they are delivered. PUSHED: the subscription has an endpoint, whose
   * 2xx alone acknowledges.
   */
  readonly acknowledge: (
    inbox: InboxRef,
    deliveries: readonly DeliveryRef[],
  ) => Promise<
    { readonly answer: 'OK'; readonly answers: readonly FinishAnswer[] } | { readonly answer: 'GONE' | 'PUSHED' }
  >;
  /**
   * Open events that a subscription without an endpoint may take now: the first of each group key, those that wait
   * longest first; `all`: also what follows them (in order, those of a key together). At most `limit` (≤ 250) and about
   * 4 MiB, so that one may be asked for again; what is not acknowledged comes again.
   */
  readonly pull: (
    inbox: InboxRef,
    options: { readonly limit: number; readonly all?: boolean },
  ) => Promise<
    | { readonly answer: 'OK'; readonly events: readonly PulledEvent[]; readonly more: boolean }
    | { readonly answer: Exclude<Permission, 'OPEN' | 'INACTIVE'> | 'PUSHED' }
  >;
}

export interface InboxOperationsDeps {
  readonly redis: RedisClient;
  readonly nowMs: () => number;
  /** Of the dispatchers' hints. */
  readonly lower: HintIndex['lower'];
}

const FINISH_AT_ONCE = 200;
/** Bodies that one call fetches: 256 KiB each at most. */
const BODIES_AT_ONCE = 16;
const PULLED_BYTES = 4 * 1024 * 1024;

/** A delivery by its lane's key (`lib/lanes.lua`). */
interface Keyed {
  readonly key: string;
  readonly ref: string;
}

/** Makes the dispatchers look at a subscription now. */
export async function wakeInbox({ redis, nowMs, lower }: InboxOperationsDeps, inbox: InboxRef): Promise<void> {
  const sub = integrationKeys(inbox.integration).sub(inbox.sub);
  const [tenant, queue] = (await redis.call('hmget', sub, 'tenant', 'queue')) as (string | null)[];
  if (tenant === null || queue === null) return;
  await lower([{ member: inboxMember(inbox), dueMs: nowMs(), home: `${tenant}:${queue}` }]);
}

export function createInboxOperations(deps: InboxOperationsDeps): InboxOperations {
  const { redis, nowMs } = deps;
  const store = createInboxStore(redis);

  async function finish(
    inbox: InboxRef,
    outcome: 'skipped' | 'delivered',
    items: readonly Keyed[],
  ): Promise<FinishAnswer[] | 'GONE' | 'PUSHED'> {
    const x = inboxKeys(inbox.integration, inbox.sub, inbox.inc);
    const i = integrationKeys(inbox.integration);
    const answers: FinishAnswer[] = [];
    for (let at = 0; at < items.length; at += FINISH_AT_ONCE) {
      const keys = [i.sub(inbox.sub), x.pending, x.due, x.claims, x.tries, x.final, i.meta];
      const args: Argument[] = [nowMs(), RECORD_TTL_MS, inbox.inc, outcome];
      const buckets = new Map<number, number>();
      for (const { key, ref } of items.slice(at, at + FINISH_AT_ONCE)) {
        const bucket = bucketOf(refMs(ref));
        let index = buckets.get(bucket);
        if (index === undefined) {
          index = keys.push(x.records(bucket));
          buckets.set(bucket, index);
        }
        args.push(key, ref, index);
      }
      const [word, ...words] = (await redis.run('finish', keys, args)) as [string, ...FinishAnswer[]];
      if (word !== 'OK') return word as 'GONE' | 'PUSHED';
      answers.push(...words);
    }
    // Also when all of them had ended: who ended them may have died before this.
    if (answers.some(answer => answer === 'OK' || answer === outcome)) await wakeInbox(deps, inbox);
    return answers;
  }

  /** Group keys are read where the router wrote them: they never change. Without one retention took it. */
  async function keyOf(inbox: InboxRef, { ref, replayId }: DeliveryRef): Promise<Keyed | undefined> {
    if (!isRef(ref) || !(replayId === undefined || isReplayId(replayId))) return undefined;
    const { log } = inboxKeys(inbox.integration, inbox.sub, inbox.inc);
    const id = streamIdOfRef(ref);
    const [entry] = (await redis.call('xrange', log, id, id)) as [string, string[]][];
    const groupKey = entry?.[1][1] ?? '';
    return { key: replayId === undefined ? groupKey : `${groupKey}\x01${replayId}`, ref };
  }

  async function finishEach(
    inbox: InboxRef,
    outcome: 'skipped' | 'delivered',
    deliveries: readonly DeliveryRef[],
  ): Promise<FinishAnswer[] | 'GONE' | 'PUSHED'> {
    const keyed = await Promise.all(deliveries.map(delivery => keyOf(inbox, delivery)));
    const words = await finish(
      inbox,
      outcome,
      keyed.filter(each => each !== undefined),
    );
    if (typeof words === 'string') return words;
    const rest = words.values();
    return keyed.map(each => (each === undefined ? 'UNKNOWN' : (rest.next().value as FinishAnswer)));
  }

  return {
    async skip(inbox, delivery) {
      const answers = await finishEach(inbox, 'skipped', [delivery]);
      return typeof answers === 'string' ? 'GONE' : (answers[0] as FinishAnswer);
    },

    async skipUpTo(inbox, ref, { groupKey, cursor } = {}) {
      if (!isRef(ref)) return { answer: 'BAD_REF' };
      const { pending } = inboxKeys(inbox.integration, inbox.sub, inbox.inc);
      const after = cursor === undefined ? undefined : Buffer.from(cursor, 'base64url').toString();
      if (after !== undefined && !isMemberOf(after, groupKey)) return { answer: 'BAD_CURSOR' };
      const from = after !== undefined ? `(${after}` : groupKey === undefined ? '-' : `[${groupKey}\0`;
      const to = groupKey === undefined ? '+' : `[${groupKey}\0${ref}`;
      const slice = ['limit', 0, FINISH_AT_ONCE] as const;
      const members = (await redis.call('zrangebylex', pending, from, to, ...slice)) as string[];
      const items = members
        .map(member => ({ key: member.slice(0, -16), ref: member.slice(-15) }))
        .filter(item => item.ref <= ref && replayOf(item.key) === undefined);
      const words = await finish(inbox, 'skipped', items);
      if (typeof words === 'string') return { answer: 'GONE' };
      const last = members.length < FINISH_AT_ONCE ? undefined : (members.at(-1) as string);
      return {
        answer: 'OK',
        skipped: words.filter(word => word === 'OK').length,
        cursor: last === undefined ? undefined : Buffer.from(last).toString('base64url'),
      };
    },

    async acknowledge(inbox, deliveries) {
      if (deliveries.length > 250) throw new RangeError('at most 250 are acknowledged at once');
      const answers = await finishEach(inbox, 'delivered', deliveries);
      return typeof answers === 'string' ? { answer: answers } : { answer: 'OK', answers };
    },

    async pull(inbox, { limit, all }) {
      const i = integrationKeys(inbox.integration);
      const x = inboxKeys(inbox.integration, inbox.sub, inbox.inc);
      const [word, more, ...pairs] = (await redis.run(
        'pull',
        [i.meta, i.act, i.sub(inbox.sub), x.pending, x.due],
        [nowMs(), inbox.inc, Math.min(limit, 250), all === true ? 1 : 0],
      )) as [string, number, ...string[]];
      if (word !== 'OK') return { answer: word as 'GONE' };
      const open: Keyed[] = [];
      for (let at = 0; at < pairs.length; at += 2)
        open.push({ key: pairs[at] as string, ref: pairs[at + 1] as string });
      const { tenant = '', queue = '', gen = '' } = (await store.readSubscription(inbox.integration, inbox.sub)) ?? {};
      const events: PulledEvent[] = [];
      let bytes = 0;
      for (let at = 0; at < open.length; at += BODIES_AT_ONCE) {
        if (bytes >= PULLED_BYTES) return { answer: 'OK', events, more: true };
        const part = open.slice(at, at + BODIES_AT_ONCE);
        const stored = await store.readEvents(
          tenant,
          queue,
          gen,
          part.map(({ ref }) => streamIdOfRef(ref)),
        );
        for (const [n, event] of stored.entries()) {
          // Retention is about to end it.
          if (event === undefined) continue;
          const { key, ref } = part[n] as Keyed;
          const replayId = replayOf(key);
          bytes += event.body.length;
          events.push({
            ref,
            ...(replayId === undefined ? {} : { replayId }),
            groupKey: event.groupKey,
            meta: parseEventMeta(event.meta, event.groupKey, ref),
            body: event.body,
          });
        }
      }
      return { answer: 'OK', events, more: more === 1 };
    },
  };
}

function isMemberOf(member: string, groupKey: string | undefined): boolean {
  if (member.at(-16) !== '\0' || !isRef(member.slice(-15))) return false;
  return groupKey === undefined || member.slice(0, -16) === groupKey;
}
