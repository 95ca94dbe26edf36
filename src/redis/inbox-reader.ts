import { type EventMeta, parseEventMeta } from '../core/events/event-meta.ts';
import { type EventProgress, parseEventProgress } from '../core/events/event-state.ts';
import { isTestRef, testEvent } from '../core/events/test-event.ts';
import { tokensOf } from '../core/events/tokens.ts';
import { isRef, refMs, streamIdOfRef } from '../core/ids/refs.ts';
import type { RedisClient } from './client.ts';
import { createInboxStore, type InboxRef } from './inbox-store.ts';
import { type EventRange, type WalkedEvent, walkInbox } from './inbox-walk.ts';
import { bucketOf, inboxKeys, integrationKeys, queueKeys } from './keys.ts';

export interface ListedEvent extends WalkedEvent {
  /** When ingress accepted it, ms. */
  readonly acceptedMs: number;
  /** undefined if retention removed the event; then only its progress is known. */
  readonly meta: EventMeta | undefined;
  /** Of its body. */
  readonly bytes: number | undefined;
  /** What a replay costs. */
  readonly tokens: number | undefined;
}

export type EventList =
  | { readonly answer: 'OK'; readonly events: readonly ListedEvent[]; readonly cursor: string | undefined }
  | { readonly answer: 'GONE' | 'BAD_CURSOR' };

export interface InspectedEvent {
  readonly ref: string;
  readonly acceptedMs: number;
  readonly groupKey: string | undefined;
  readonly meta: EventMeta | undefined;
  readonly bytes: number | undefined;
  readonly tokens: number | undefined;
  /** undefined where retention removed it, or it is withheld. */
  readonly body: Buffer | undefined;
  /** Why the body is not shown: the partner has not got it, and may not now. */
  readonly withheld: Exclude<Permission, 'OPEN'> | undefined;
  readonly progress: EventProgress;
  /** The last 20, and all that are open. */
  readonly replays: readonly (EventProgress & { readonly replayId: string })[];
  /** What failed attempts were answered with, of those that are still kept; oldest first. */
  readonly responses: readonly {
    readonly replayId?: string;
    readonly attempt: number;
    readonly body: Buffer;
    /** The answer was longer. */
    readonly truncated: boolean;
  }[];
}

/** PAUSED: covered by a Block, or suspended. INACTIVE: its group key is. CLOSED: unknown now, ask again. */
export type Permission = 'OPEN' | 'CLOSED' | 'PENDING' | 'REVOKED' | 'GONE' | 'PAUSED' | 'INACTIVE';

/** Looks into inboxes. Nothing here costs tokens, and nothing changes. */
export interface InboxReader {
  /** A page of at most `limit` (≤ 250) events, in the order of acceptance; it may be short and have a cursor. */
  readonly list: (
    inbox: InboxRef,
    options: EventRange & {
      readonly newestFirst?: boolean;
      readonly cursor?: string | undefined;
      readonly limit: number;
    },
  ) => Promise<EventList>;
  /** One event, or test event, with its attempts. UNKNOWN: it never was here, or its record is too old. */
  readonly inspect: (
    inbox: InboxRef,
    ref: string,
  ) => Promise<{ readonly answer: 'OK'; readonly event: InspectedEvent } | { readonly answer: 'GONE' | 'UNKNOWN' }>;
}

/** Events whose bodies one script call passes by: 256 KiB each at most. */
const METAS_AT_ONCE = 25;
const CURSOR = /^[0-9a-z]{15}(?::[\w-]+)?$/;

/** Whether events of these group keys may be given to a subscription now; one answer for all, or one for each. */
export async function readPermissions(
  redis: RedisClient,
  inbox: InboxRef,
  groupKeys: readonly string[],
): Promise<Exclude<Permission, 'OPEN' | 'INACTIVE'> | readonly ('OPEN' | 'INACTIVE')[]> {
  const i = integrationKeys(inbox.integration);
  const [word, ...active] = (await redis.run(
    'permit',
    [i.meta, i.act, i.sub(inbox.sub)],
    [inbox.inc, ...groupKeys],
  )) as [string, ...number[]];
  if (word !== 'OPEN') return word as 'CLOSED';
  return active.map(each => (each === 1 ? 'OPEN' : 'INACTIVE'));
}

export function createInboxReader(redis: RedisClient): InboxReader {
  const store = createInboxStore(redis);

  async function describe(inbox: InboxRef, events: readonly WalkedEvent[]): Promise<ListedEvent[]> {
    if (events.length === 0) return [];
    const { tenant = '', queue = '', gen = '' } = (await store.readSubscription(inbox.integration, inbox.sub)) ?? {};
    const { bodies } = queueKeys(tenant, queue, gen);
    const parts: Promise<unknown>[] = [];
    for (let at = 0; at < events.length; at += METAS_AT_ONCE) {
      const ids = events.slice(at, at + METAS_AT_ONCE).map(({ ref }) => streamIdOfRef(ref));
      parts.push(redis.run('metas', [bodies], ids));
    }
    const metas = (await Promise.all(parts)).flat() as [meta?: string, groupKey?: string, bytes?: number][];
    return events.map((event, i) => {
      const [text, groupKey, bytes] = metas[i] as (typeof metas)[number];
      return {
        ...event,
        groupKey: event.groupKey ?? groupKey,
        acceptedMs: refMs(event.ref),
        meta: text === undefined ? undefined : parseEventMeta(text, groupKey ?? '', event.ref),
        bytes,
        tokens: bytes === undefined ? undefined : tokensOf(bytes),
      };
    });
  }

  async function readEvent(tenant: string, queue: string, gen: string, ref: string) {
    const [event] = await store.readEvents(tenant, queue, gen, [streamIdOfRef(ref)]);
    return event && { meta: parseEventMeta(event.meta, event.groupKey, ref), body: event.body };
  }

  async function readResponses(inbox: InboxRef, ref: string): Promise<InspectedEvent['responses']> {
    const { failures } = inboxKeys(inbox.integration, inbox.sub, inbox.inc);
    const flat = (await redis.runBuffers('fields', [failures], [])) as Buffer[];
    const found: { order: number; response: InspectedEvent['responses'][number] }[] = [];
    for (let at = 0; at < flat.length; at += 2) {
      const value = flat[at + 1] as Buffer;
      if (!value.subarray(0, ref.length).equals(Buffer.from(ref))) continue;
      const line = value.indexOf('\n');
      const [entry = '', attempt = ''] = value.subarray(0, line).toString().split(' ');
      const replayId = entry.slice(ref.length + 1);
      const truncated = attempt.endsWith('+');
      const response = { attempt: Number.parseInt(attempt, 10), body: value.subarray(line + 1), truncated };
      found.push({ order: Number(flat[at]), response: replayId === '' ? response : { replayId, ...response } });
    }
    return found.toSorted((a, b) => a.order - b.order).map(({ response }) => response);
  }

  return {
    async list(inbox, { cursor, ...options }) {
      const after = cursor === undefined ? undefined : Buffer.from(cursor, 'base64url').toString();
      if (after !== undefined && !(CURSOR.test(after) && isRef(after.slice(0, 15)))) return { answer: 'BAD_CURSOR' };
      const page = await walkInbox(redis, inbox, { ...options, after, most: Math.min(options.limit, 250) });
      if (page.answer !== 'OK') return page;
      const next = page.after === undefined ? undefined : Buffer.from(page.after).toString('base64url');
      return { answer: 'OK', events: await describe(inbox, page.events), cursor: next };
    },

    async inspect(inbox, ref) {
      const found = await readProgress(redis, inbox, ref);
      if (found.answer !== 'OK') return found;
      const fields = await store.readSubscription(inbox.integration, inbox.sub);
      if (fields === undefined) return { answer: 'GONE' };
      const { tenant = '', queue = '', gen = '' } = fields;
      const [event, responses] = await Promise.all([
        isTestRef(ref) ? testEvent(ref, inbox.sub) : readEvent(tenant, queue, gen, ref),
        readResponses(inbox, ref),
      ]);
      const groupKey = found.groupKey ?? event?.meta.groupKey;
      const permissions = await readPermissions(redis, inbox, [groupKey ?? '']);
      const permission = typeof permissions === 'string' ? permissions : (permissions[0] as Permission);
      const sent = found.progress.state === 'delivered' || found.progress.attempts > 0;
      const withheld = sent || permission === 'OPEN' ? undefined : permission;
      return {
        answer: 'OK',
        event: {
          ref,
          acceptedMs: refMs(ref),
          groupKey,
          meta: event?.meta,
          bytes: event?.body.length,
          tokens: event === undefined || isTestRef(ref) ? undefined : tokensOf(event.body.length),
          body: withheld === undefined ? event?.body : undefined,
          withheld,
          progress: found.progress,
          replays: found.replays,
          responses,
        },
      };
    },
  };
}

/** State of one event and of its replays; `groupKey` is undefined where retention removed it from the inbox. */
export async function readProgress(
  redis: RedisClient,
  inbox: InboxRef,
  ref: string,
): Promise<
  | ({ readonly answer: 'OK'; readonly groupKey: string | undefined } & Pick<InspectedEvent, 'progress' | 'replays'>)
  | { readonly answer: 'GONE' | 'UNKNOWN' }
> {
  if (!isRef(ref)) return { answer: 'UNKNOWN' };
  const x = inboxKeys(inbox.integration, inbox.sub, inbox.inc);
  const keys = [integrationKeys(inbox.integration).sub(inbox.sub), x.log, x.pending, x.claims, x.tries, x.replays];
  const [word, groupKey, , first, ...rest] = (await redis.run(
    'inspect',
    [...keys, x.records(bucketOf(refMs(ref)))],
    [inbox.inc, ref, streamIdOfRef(ref)],
  )) as string[];
  if (word !== 'OK') return { answer: word as 'GONE' };
  const replays: InspectedEvent['replays'][number][] = [];
  for (let at = 0; at < rest.length; at += 2) {
    replays.push({ replayId: rest[at] as string, ...parseEventProgress(rest[at + 1] as string) });
  }
  return {
    answer: 'OK',
    groupKey: groupKey === '' ? undefined : groupKey,
    progress: parseEventProgress(first as string),
    replays,
  };
}
