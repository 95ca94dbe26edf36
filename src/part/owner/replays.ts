import { tokensOf } from '../../core/events/tokens.ts';
import { CHUNK_TTL_MS, type ReplayInboxes } from '../../plane/replay-inboxes.ts';
import {
  type PricedEvent,
  REPLAYED_AT_ONCE,
  type ReplayPrice,
  type ReplayRefusal,
  type ReplaySelection,
} from '../../plane/replay-prices.ts';
import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';
import { createReadDetails, recordKeysOf } from '../inbox/details.ts';
import type { FindSlot, SlotOfPart } from '../inbox/find-part.ts';
import { cursorOf, nameOfCursor } from '../inbox/inbox-reader.ts';
import { readPermissions } from '../inbox/permissions.ts';
import { inboxRefOf, partRefOf } from '../inbox/ref-names.ts';
import { createWalkSlot } from '../inbox/walk.ts';
import { type Part, partKeys, slotOf } from '../keys.ts';
import { NO_REF } from '../lanes/ref.ts';

const ENQUEUE = readNamedScript(new URL('enqueue.lua', import.meta.url));
const PAGES_AT_ONCE = 50;
/**
 * The number of events that a script adds to lanes. The number is lower than for other scripts, because each event is
 * read together with its list of slots.
 */
export const PART_CHUNK_EVENTS = 100;

type Price = ReplayPrice | { readonly answer: ReplayRefusal };
type Range = Exclude<ReplaySelection, { readonly ref: string }>;

const placeText = ({ tenant, queue, gen, number }: Part) => [tenant, queue, gen, number].join(' ');

function parsePlace(place: string): Part {
  const [tenant = '', queue = '', gen = '', number] = place.split(' ');
  return { tenant, queue, gen, number: Number(number) };
}

/** Creates the functions that price replays of events of parts, and put these events into lanes. */
export function createPartReplayInboxes(redis: ScriptClient, findSlot: FindSlot): ReplayInboxes {
  const readDetails = createReadDetails(redis);

  async function priceOne(at: SlotOfPart, inboxRef: string): Promise<Price> {
    const ref = partRefOf(inboxRef);
    const details = ref === undefined ? [] : await readDetails(at, [{ ref }]);
    if (details === 'GONE') return { answer: 'GONE' };
    const { progress, event } = details[0] ?? {};
    if (progress === undefined) return { answer: 'UNKNOWN' };
    if (progress.endedMs === undefined) return { answer: 'OPEN_EVENT' };
    if (event === undefined) return { answer: 'EXPIRED' };
    const permissions = await readPermissions(redis, at, [event.groupKey]);
    if (typeof permissions === 'string') return { answer: permissions };
    if (permissions[0] !== 'OPEN') return { answer: 'INACTIVE' };
    const tokens = tokensOf(event.bytes);
    return { answer: 'OK', events: [{ ref: inboxRef, tokens }], tokens, cursor: undefined };
  }

  return {
    async price(inbox, selection) {
      const at = await findSlot(inbox);
      if (at === undefined) return { answer: 'GONE' };
      const permissions = await readPermissions(redis, at, []);
      if (typeof permissions === 'string') return { answer: permissions };
      return 'ref' in selection ? priceOne(at, selection.ref) : priceRange(redis, at, selection);
    },

    async placeOf(inbox) {
      const at = await findSlot(inbox);
      return at === undefined ? '' : placeText(at.part);
    },

    async enqueue({ inbox, replayId, number, refs, place }) {
      const part = parsePlace(place);
      const slot = slotOf(inbox.sub, inbox.inc);
      const keys = partKeys(part);
      const partRefs = refs.map(ref => partRefOf(ref) ?? NO_REF);
      const { listed, indexes } = recordKeysOf(part, partRefs);
      const [word, letters] = await callScript(redis, ENQUEUE, {
        keys,
        listed: [keys.chunks(slot, replayId), ...listed],
        args: { gen: part.gen, slot, replay: replayId, number, ttlMs: CHUNK_TTL_MS },
        more: partRefs.flatMap((ref, i) => [ref, (indexes[i] as number) + 1]),
      });
      return word === 'OK' ? (letters as string) : undefined;
    },

    // The script that has added it has notified the dispatchers in the same step.
    wake: async () => {},
  };
}

async function priceRange(redis: ScriptClient, at: SlotOfPart, { cursor, ...range }: Range): Promise<Price> {
  const walk = createWalkSlot(redis);
  const events: PricedEvent[] = [];
  const active = new Map<string, boolean>();
  let after = cursor === undefined ? undefined : nameOfCursor(cursor);
  if (cursor !== undefined && after === undefined) return { answer: 'BAD_CURSOR' };
  for (let pages = 0; pages < PAGES_AT_ONCE && events.length < REPLAYED_AT_ONCE; pages++) {
    const most = Math.min(1_000, REPLAYED_AT_ONCE - events.length);
    const page = await walk(at, { ...range, after, most });
    if (page.answer !== 'OK') return page;
    // A replay that did not arrive is its event, which is in the list itself.
    const found = page.events.flatMap(each =>
      each.event === undefined || each.replayId !== undefined ? [] : [{ ref: each.ref, ...each.event }],
    );
    const groupKeys = [...new Set(found.map(({ groupKey }) => groupKey))].filter(key => !active.has(key));
    const permissions = await readPermissions(redis, at, groupKeys);
    if (typeof permissions === 'string') return { answer: permissions };
    for (const [i, key] of groupKeys.entries()) active.set(key, permissions[i] === 'OPEN');
    for (const { ref, groupKey, bytes } of found) {
      if (active.get(groupKey) === true) events.push({ ref: inboxRefOf(ref), tokens: tokensOf(bytes) });
    }
    after = page.after;
    if (after === undefined) break;
  }
  return {
    answer: 'OK',
    events,
    tokens: events.reduce((sum, { tokens }) => sum + tokens, 0),
    cursor: after === undefined ? undefined : cursorOf(after),
  };
}
