import { isTestRef, testEvent } from '../../core/events/test-event.ts';
import { tokensOf } from '../../core/events/tokens.ts';
import type { InboxReader, InspectedEvent, Permission } from '../../plane/inbox-reader.ts';
import type { InboxRef } from '../../plane/inbox-ref.ts';
import { partKeys } from '../keys.ts';
import { msOfRef } from '../lanes/ref.ts';
import { createReadBodies } from '../log/read-bodies.ts';
import { readAnswers } from './answers.ts';
import { createReadDetails, type Details } from './details.ts';
import type { PartClient, SlotOfPart } from './find-part.ts';
import { readPermissions } from './permissions.ts';
import { inboxRefOf, partRefOf } from './ref-names.ts';

type InspectSlot = (at: SlotOfPart, inbox: InboxRef, inboxRef: string) => ReturnType<InboxReader['inspect']>;

export function createInspectSlot(redis: PartClient): InspectSlot {
  const readDetails = createReadDetails(redis);
  const readBodies = createReadBodies(redis);

  /** The replays of an event that are still recorded. */
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
    // Retention has removed the event in the meantime.
    if (body === undefined || body.length !== event.bytes) return undefined;
    return { meta: event.meta, body };
  }

  async function permissionOf(at: SlotOfPart, groupKey: string): Promise<Permission> {
    const permissions = await readPermissions(redis, at, [groupKey]);
    return typeof permissions === 'string' ? permissions : (permissions[0] as Permission);
  }

  return async function inspectSlot(at, inbox, inboxRef) {
    const ref = partRefOf(inboxRef);
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
  };
}
