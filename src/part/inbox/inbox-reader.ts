import { tokensOf } from '../../core/events/tokens.ts';
import type { InboxReader, ListedEvent } from '../../plane/inbox-reader.ts';
import { msOfRef } from '../lanes/ref.ts';
import type { FindSlot, PartClient } from './find-part.ts';
import { createInspectSlot } from './inspect.ts';
import { inboxRefOf, partRefOf } from './ref-names.ts';
import { createWalkSlot, type FoundDelivery, parseName } from './walk.ts';

const MOST = 250;

/** The last name on a page of a part. The name has the format of a cursor and uses the refs of the inbox. */
export function cursorOf(name: string): string {
  const { ref, replayId } = parseName(name);
  return Buffer.from(replayId === undefined ? inboxRefOf(ref) : `${inboxRefOf(ref)}:${replayId}`).toString('base64url');
}

/** If the id was not created by Sluice, this is undefined. */
export function nameOfCursor(cursor: string): string | undefined {
  const [, inboxRef = '', replay = ''] =
    /^([0-9a-z]{15})((?::[\w-]+)?)$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
  const ref = partRefOf(inboxRef);
  return ref === undefined ? undefined : ref + replay;
}

/** The delivery fields which are shown in a list. */
export function listedOf({ ref, replayId, event, progress }: FoundDelivery): ListedEvent {
  return {
    ref: inboxRefOf(ref),
    ...(replayId === undefined ? {} : { replayId }),
    groupKey: event?.groupKey,
    progress,
    acceptedMs: msOfRef(ref),
    meta: event?.meta,
    bytes: event?.bytes,
    tokens: event && tokensOf(event.bytes),
  };
}

/** Reads inboxes which are stored in parts. */
export function createPartInboxReader(redis: PartClient, findSlot: FindSlot): InboxReader {
  const walk = createWalkSlot(redis);
  const inspectSlot = createInspectSlot(redis);
  return {
    async list(inbox, { cursor, ...options }) {
      const after = cursor === undefined ? undefined : nameOfCursor(cursor);
      if (cursor !== undefined && after === undefined) return { answer: 'BAD_CURSOR' };
      const at = await findSlot(inbox);
      if (at === undefined) return { answer: 'GONE' };
      const page = await walk(at, { ...options, after, most: Math.min(options.limit, MOST) });
      if (page.answer !== 'OK') return page;
      const next = page.after === undefined ? undefined : cursorOf(page.after);
      return { answer: 'OK', events: page.events.map(listedOf), cursor: next };
    },

    async inspect(inbox, inboxRef) {
      const at = await findSlot(inbox);
      return at === undefined ? { answer: 'GONE' } : inspectSlot(at, inbox, inboxRef);
    },
  };
}
