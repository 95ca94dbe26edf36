import type { EventState } from '../core/events/event-state.ts';
import { tokensOf } from '../core/events/tokens.ts';
import { isRef, streamIdOfRef } from '../core/ids/refs.ts';
import type { RedisClient } from './client.ts';
import { type Permission, readPermissions, readProgress } from './inbox-reader.ts';
import type { InboxRef } from './inbox-store.ts';
import { walkInbox } from './inbox-walk.ts';
import { integrationKeys, queueKeys } from './keys.ts';

/** States that can be replayed: an event that is still open comes anyway. */
export const REPLAYABLE_STATES = ['delivered', 'dead', 'skipped', 'expired'] as const satisfies readonly EventState[];
export type ReplayableState = (typeof REPLAYABLE_STATES)[number];

/** What is replayed: one event, or those accepted from `fromMs` to before `toMs` that ended so. */
export type ReplaySelection =
  | { readonly ref: string }
  | {
      readonly fromMs: number;
      readonly toMs: number;
      readonly states: readonly ReplayableState[];
      /** Where the operation before ended. */
      readonly cursor?: string | undefined;
    };

export interface PricedEvent {
  readonly ref: string;
  readonly tokens: number;
}

/**
 * OPEN_EVENT: it has not ended yet. EXPIRED: retention removed it. UNKNOWN: it never was here. The others: the
 * subscription, or the event's group key, may not be given events now.
 */
export type ReplayRefusal = Exclude<Permission, 'OPEN'> | 'UNKNOWN' | 'EXPIRED' | 'OPEN_EVENT' | 'BAD_CURSOR';

export interface ReplayPrice {
  readonly answer: 'OK';
  /** Oldest first; each costs its tokens again. */
  readonly events: readonly PricedEvent[];
  readonly tokens: number;
  /** Given while the range has, or may have, more: what one operation takes is bounded. */
  readonly cursor: string | undefined;
}

/** Events of one operation, and pages of 1,000 that it looks at to find them. */
export const REPLAYED_AT_ONCE = 10_000;
const PAGES_AT_ONCE = 50;
const PRICED_AT_ONCE = 500;

/**
 * What a replay would bring and cost now: a dry run. Of a range, events that retention removed, or whose group key is
 * not active, are left out.
 */
export async function priceReplay(
  redis: RedisClient,
  inbox: InboxRef,
  selection: ReplaySelection,
): Promise<ReplayPrice | { readonly answer: ReplayRefusal }> {
  const permissions = await readPermissions(redis, inbox, []);
  if (typeof permissions === 'string') return { answer: permissions };
  return 'ref' in selection ? priceOne(redis, inbox, selection.ref) : priceRange(redis, inbox, selection);
}

async function priceOne(
  redis: RedisClient,
  inbox: InboxRef,
  ref: string,
): Promise<ReplayPrice | { readonly answer: ReplayRefusal }> {
  const found = await readProgress(redis, inbox, ref);
  if (found.answer !== 'OK') return { answer: found.answer };
  if (found.progress.endedMs === undefined) return { answer: 'OPEN_EVENT' };
  if (found.groupKey === undefined) return { answer: 'EXPIRED' };
  const permissions = await readPermissions(redis, inbox, [found.groupKey]);
  if (typeof permissions === 'string') return { answer: permissions };
  if (permissions[0] !== 'OPEN') return { answer: 'INACTIVE' };
  const [size] = await readSizes(redis, inbox, [ref]);
  if (size === undefined) return { answer: 'EXPIRED' };
  const tokens = tokensOf(size.bytes);
  return { answer: 'OK', events: [{ ref, tokens }], tokens, cursor: undefined };
}

async function priceRange(
  redis: RedisClient,
  inbox: InboxRef,
  { fromMs, toMs, states, cursor }: Exclude<ReplaySelection, { readonly ref: string }>,
): Promise<ReplayPrice | { readonly answer: ReplayRefusal }> {
  const events: PricedEvent[] = [];
  const active = new Map<string, boolean>();
  let after = cursor === undefined ? undefined : Buffer.from(cursor, 'base64url').toString();
  if (after !== undefined && !(/^[0-9a-z]{15}(?::[\w-]+)?$/.test(after) && isRef(after.slice(0, 15)))) {
    return { answer: 'BAD_CURSOR' };
  }
  for (let pages = 0; ; ) {
    const most = Math.min(1_000, REPLAYED_AT_ONCE - events.length);
    const page = await walkInbox(redis, inbox, { states, fromMs, toMs, after, most });
    if (page.answer !== 'OK') return page;
    // A replay that did not arrive is its event, which is in the list itself.
    const refs = [...new Set(page.events.filter(({ replayId }) => replayId === undefined).map(({ ref }) => ref))];
    const sizes = await readSizes(redis, inbox, refs);
    const groupKeys = [...new Set(sizes.map(size => size?.groupKey))].filter(
      key => key !== undefined && !active.has(key),
    );
    const permissions = await readPermissions(redis, inbox, groupKeys as string[]);
    if (typeof permissions === 'string') return { answer: permissions };
    for (const [i, key] of groupKeys.entries()) active.set(key as string, permissions[i] === 'OPEN');
    for (const [i, ref] of refs.entries()) {
      const size = sizes[i];
      if (size !== undefined && active.get(size.groupKey) === true) events.push({ ref, tokens: tokensOf(size.bytes) });
    }
    after = page.after;
    pages++;
    if (after === undefined || pages === PAGES_AT_ONCE || events.length === REPLAYED_AT_ONCE) break;
  }
  return {
    answer: 'OK',
    events,
    tokens: events.reduce((sum, { tokens }) => sum + tokens, 0),
    cursor: after === undefined ? undefined : Buffer.from(after).toString('base64url'),
  };
}

/** Sizes as the queue has them; undefined for an event that retention removed. */
async function readSizes(
  redis: RedisClient,
  inbox: InboxRef,
  refs: readonly string[],
): Promise<({ readonly groupKey: string; readonly bytes: number } | undefined)[]> {
  if (refs.length === 0) return [];
  const { tenant = '', queue = '', gen = '' } = await redis.readHash(integrationKeys(inbox.integration).sub(inbox.sub));
  const { events } = queueKeys(tenant, queue, gen);
  const sizes: ({ readonly groupKey: string; readonly bytes: number } | undefined)[] = [];
  for (let at = 0; at < refs.length; at += PRICED_AT_ONCE) {
    const ids = refs.slice(at, at + PRICED_AT_ONCE).map(streamIdOfRef);
    const flat = (await redis.run('sizes', [events], ids)) as string[];
    for (let i = 0; i < flat.length; i += 2) {
      sizes.push(flat[i + 1] === '' ? undefined : { groupKey: flat[i] as string, bytes: Number(flat[i + 1]) });
    }
  }
  return sizes;
}
