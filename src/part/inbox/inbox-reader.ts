import { isTestRef, testEvent } from '../../core/events/test-event.ts';
import { tokensOf } from '../../core/events/tokens.ts';
import type { InboxReader, InspectedEvent, ListedEvent, Permission } from '../../redis/inbox-reader.ts';
import type { InboxRef } from '../../redis/inbox-store.ts';
import { partKeys } from '../keys.ts';
import { msOfRef } from '../lanes/ref.ts';
import { createReadBodies } from '../log/read-bodies.ts';
import { readAnswers } from './answers.ts';
import { createReadDetails, type Details } from './details.ts';
import type { FindSlot, PartClient, SlotOfPart } from './find-part.ts';
import { readPermissions } from './permissions.ts';
import { inboxRefOf, partRefOf } from './ref-names.ts';
import { createWalkSlot, type FoundDelivery, parseName } from './walk.ts';

const MOST = 250;

/** Name at which a page of a part ended, as a cursor has it: with refs of the inbox. */
export function cursorOf(name: string): string {
  const { ref, replayId } = parseName(name);
  return Buffer.from(replayId === undefined ? inboxRefOf(ref) : `${inboxRefOf(ref)}:${replayId}`).toString('base64url');
}

/** undefined: it is none of ours. */
export function nameOfCursor(cursor: string): string | undefined {
  const [, inboxRef = '', replay = ''] =
    /^([0-9a-z]{15})((?::[\w-]+)?)$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
  const ref = partRefOf(inboxRef);
  return ref === undefined ? undefined : ref + replay;
}

/** What of a delivery a list shows. */
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

/** Looks into inboxes that lie in parts. */
export function createPartInboxReader(redis: PartClient, findSlot: FindSlot): InboxReader {
  const walk = createWalkSlot(redis);
  const readDetails = createReadDetails(redis);
  const readBodies = createReadBodies(redis);

  /** The replays of an event, of those that are still known. */
  async function readReplays(at: SlotOfPart, ref: string): Promise<InspectedEvent['replays']> {
    const text = await redis.call('hget', partKeys(at.part).replays, at.slot + ref);
    const ids = typeof text === 'string' ? text.split(',') : [];
    const found: InspectedEvent['replays'][number][] = [];
    for (let done = 0; done < ids.length; ) {
      const asked = ids.slice(done).map(replayId => ({ ref, replayId }));
      const details = await readDetails(at, asked);
      if (details === 'GONE') break;
      for (const { progress } of details) {
        const replayId = ids[done++] as string;
        if (progress !== undefined) found.push({ replayId, ...progress });
      }
    }
    return found;
  }

  async function readContent(at: SlotOfPart, inbox: InboxRef, ref: string, { event }: Details) {
    if (isTestRef(inboxRefOf(ref))) return testEvent(inboxRefOf(ref), inbox.sub);
    if (event === undefined) return undefined;
    const [body] = event.bytes === 0 ? [Buffer.alloc(0)] : await readBodies(at.part, [ref]);
    // Retention removed it since.
    if (body === undefined || body.length !== event.bytes) return undefined;
    return { meta: event.meta, body };
  }

  async function permissionOf(at: SlotOfPart, groupKey: string): Promise<Permission> {
    const permissions = await readPermissions(redis, at, [groupKey]);
    return typeof permissions === 'string' ? permissions : (permissions[0] as Permission);
  }

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
      const ref = partRefOf(inboxRef);
      const at = await findSlot(inbox);
      if (at === undefined) return { answer: 'GONE' };
      if (ref === undefined) return { answer: 'UNKNOWN' };
      const details = await readDetails(at, [{ ref }]);
      if (details === 'GONE') return { answer: 'GONE' };
      const [found] = details;
      if (found?.progress === undefined) return { answer: 'UNKNOWN' };
      const { progress } = found;
      const groupKey = found.event?.groupKey ?? (isTestRef(inboxRef) ? '' : undefined);
      const [content, responses, replays, permission] = await Promise.all([
        readContent(at, inbox, ref, found),
        readAnswers(redis, at, ref),
        readReplays(at, ref),
        permissionOf(at, groupKey ?? ''),
      ]);
      const sent = progress.state === 'delivered' || progress.attempts > 0;
      const withheld = sent || permission === 'OPEN' ? undefined : permission;
      return {
        answer: 'OK',
        event: {
          ref: inboxRef,
          acceptedMs: msOfRef(ref),
          groupKey: groupKey === '' ? undefined : groupKey,
          meta: content?.meta,
          bytes: content?.body.length,
          tokens: content === undefined || isTestRef(inboxRef) ? undefined : tokensOf(content.body.length),
          body: withheld === undefined ? content?.body : undefined,
          withheld,
          progress,
          replays,
          responses,
        },
      };
    },
  };
}
