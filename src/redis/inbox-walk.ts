import {
  EVENT_STATES,
  type EventProgress,
  type EventState,
  OPEN_STATES,
  parseEventProgress,
} from '../core/events/event-state.ts';
import { isTestRef } from '../core/events/test-event.ts';
import { refMs, refOfStreamId, streamIdOfRef } from '../core/ids/refs.ts';
import type { RedisClient } from './client.ts';
import type { InboxRef } from './inbox-store.ts';
import { bucketOf, inboxKeys, integrationKeys } from './keys.ts';

/** Which events of an inbox: by state, and by when they were accepted (ms; `toMs` is not in it). */
export interface EventRange {
  /** All when absent. */
  readonly states?: readonly EventState[];
  readonly fromMs?: number;
  readonly toMs?: number;
}

export interface Walk extends EventRange {
  readonly newestFirst?: boolean;
  /** Where the last page ended. */
  readonly after?: string | undefined;
  readonly most: number;
}

export interface WalkedEvent {
  readonly ref: string;
  /** Of a replay: its id. */
  readonly replayId?: string;
  /** undefined where retention removed the event. */
  readonly groupKey: string | undefined;
  readonly progress: EventProgress;
}

export interface WalkedPage {
  readonly answer: 'OK';
  readonly events: readonly WalkedEvent[];
  /** Given while there may be more; a page may be short, even empty, and have it. */
  readonly after: string | undefined;
}

/** Entries that one call looks at: keeps its script under a few milliseconds. */
const LOOKED_AT = 1_000;
const FINAL_STATES: readonly EventState[] = ['dead', 'skipped', 'expired'];

type Source = 'log' | 'final' | 'open';

interface Entry {
  /** `ref`, or `ref:replay`: pages are ordered by it. */
  readonly name: string;
  readonly ref: string;
  readonly replayId: string;
  readonly groupKey: string;
  /** '' when it is not open. */
  readonly open: string;
}

/** Open events, and those that did not arrive, have lists of their own: they are few among all that were delivered. */
function sourceOf(states: ReadonlySet<EventState>): Source {
  if ([...states].every(state => FINAL_STATES.includes(state))) return 'final';
  return [...states].every(state => OPEN_STATES.includes(state)) ? 'open' : 'log';
}

function boundsOf(source: Source, { fromMs, toMs, after, newestFirst }: Walk): [from: string, to: string] {
  const log = source === 'log';
  const end = after === undefined ? undefined : `(${log ? streamIdOfRef(after.slice(0, 15)) : after}`;
  const first = fromMs === undefined ? '-' : log ? String(fromMs) : `[${refOfStreamId(`${fromMs}-0`)}`;
  const last = toMs === undefined ? '+' : log ? String(toMs - 1) : `(${refOfStreamId(`${toMs}-0`)}`;
  return newestFirst === true ? [first, end ?? last] : [end ?? first, last];
}

/** Open ones come in no order. */
function orderOpen(entries: readonly Entry[], { fromMs = 0, toMs, after, newestFirst }: Walk): Entry[] {
  const inRange = entries.filter(({ ref }) => refMs(ref) >= fromMs && (toMs === undefined || refMs(ref) < toMs));
  const ordered = inRange.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  if (newestFirst === true) ordered.reverse();
  if (after === undefined) return ordered;
  return ordered.filter(({ name }) => (newestFirst === true ? name < after : name > after));
}

/**
 * One page of an inbox, in the order in which its events were accepted. Looks at 1,000 entries at most, so that a page
 * may be short while there are more. Delivered events are found as long as retention keeps them, those that did not
 * arrive as long as their records: where other states are asked for, too, only as long as retention keeps them. Replays
 * are found only where open ones are asked for, or those that did not arrive, and nothing else. Test events are left out.
 *
 * @returns GONE: there is no such subscription (any more)
 */
export async function walkInbox(
  redis: RedisClient,
  inbox: InboxRef,
  walk: Walk,
): Promise<WalkedPage | { readonly answer: 'GONE' }> {
  const wanted = new Set(walk.states ?? EVENT_STATES);
  const count = wanted.size === EVENT_STATES.length ? Math.min(walk.most, LOOKED_AT) : LOOKED_AT;
  let source = sourceOf(wanted);
  let reply = await look(redis, inbox, walk, source, count);
  if (reply === 'MANY') {
    source = 'log';
    reply = await look(redis, inbox, walk, source, count);
  }
  if (!Array.isArray(reply)) return { answer: 'GONE' };
  const entries = source === 'open' ? orderOpen(reply, walk) : reply;
  const records = await readRecords(
    redis,
    inbox,
    entries.filter(({ open }) => open === ''),
  );

  const events: WalkedEvent[] = [];
  for (const [i, { name, ref, replayId, groupKey, open }] of entries.entries()) {
    const text = open === '' ? records.get(name) : open;
    const progress = text === undefined ? undefined : parseEventProgress(text);
    if (progress === undefined || !wanted.has(progress.state) || isTestRef(ref)) continue;
    events.push({
      ref,
      ...(replayId === '' ? {} : { replayId }),
      groupKey: groupKey === '' ? undefined : groupKey,
      progress,
    });
    if (events.length === walk.most && i < entries.length - 1) return { answer: 'OK', events, after: name };
  }
  const full = source !== 'open' && entries.length === count;
  return { answer: 'OK', events, after: full ? entries.at(-1)?.name : undefined };
}

async function look(
  redis: RedisClient,
  inbox: InboxRef,
  walk: Walk,
  source: Source,
  count: number,
): Promise<Entry[] | 'MANY' | 'GONE'> {
  const x = inboxKeys(inbox.integration, inbox.sub, inbox.inc);
  const [word, ...rest] = (await redis.run(
    'walk',
    [integrationKeys(inbox.integration).sub(inbox.sub), x.log, x.pending, x.claims, x.tries, x.final],
    [inbox.inc, source, ...boundsOf(source, walk), walk.newestFirst === true ? 1 : 0, count],
  )) as string[];
  if (word !== 'OK') return word as 'MANY' | 'GONE';
  const entries: Entry[] = [];
  for (let at = 0; at < rest.length; at += 4) {
    const [ref, replayId, groupKey, open] = rest.slice(at, at + 4) as [string, string, string, string];
    entries.push({ name: replayId === '' ? ref : `${ref}:${replayId}`, ref, replayId, groupKey, open });
  }
  return entries;
}

/** A record is written in the step that ends an event: what was not open has one, unless it was too long ago. */
async function readRecords(
  redis: RedisClient,
  inbox: InboxRef,
  entries: readonly Entry[],
): Promise<ReadonlyMap<string, string>> {
  const x = inboxKeys(inbox.integration, inbox.sub, inbox.inc);
  const records = new Map<string, string>();
  const buckets = Map.groupBy(entries, ({ ref }) => bucketOf(refMs(ref)));
  await Promise.all(
    [...buckets].map(async ([bucket, of]) => {
      const texts = (await redis.call('hmget', x.records(bucket), ...of.map(({ name }) => name))) as (string | null)[];
      for (const [i, text] of texts.entries()) if (text !== null) records.set((of[i] as Entry).name, text);
    }),
  );
  return records;
}
