import { parseEventMeta } from '../../core/events/event-meta.ts';
import { isTestRef, testEvent } from '../../core/events/test-event.ts';
import type { Completion } from '../../part/claims/exchange.ts';
import { inboxRefOf } from '../../part/inbox/ref-names.ts';
import type { Part } from '../../part/keys.ts';
import { eventIdOf } from '../../part/log/event-id.ts';
import { type DeliverDeps, deliver } from '../dispatcher/deliver.ts';
import type { HeldClaim } from './held-claim.ts';
import type { OpenedSlot } from './opened-slots.ts';

/**
 * Makes at most one attempt for a claim; `body` is undefined for a test event, which is not stored, and for an event that
 * retention removed. Never rejects.
 */
export type Attempt = (
  slot: Pick<OpenedSlot, 'name' | 'subscription'>,
  held: HeldClaim,
  body: Buffer | undefined,
) => Promise<Completion>;

/** Reason and latency from the texts in which `deliver` reports them. */
function noteOf(record: string | undefined, attempt: string | undefined): { reason: string; latencyMs?: number } {
  const [reason = 'released', latency = '-'] = record?.split(' ').slice(3) ?? attempt?.split(',').slice(1) ?? [];
  return latency === '-' ? { reason } : { reason, latencyMs: Number(latency) };
}

export function createAttempt(deps: DeliverDeps, part: Part): Attempt {
  return async function attempt({ name, subscription }, { claim, event, atMs }, body) {
    const { lane, ref, attempts, lapses } = claim;
    const inboxRef = inboxRefOf(ref);
    const stored = body && { meta: metaOf(part, event.meta, event.groupKey, ref, inboxRef), body };
    const cached = isTestRef(inboxRef) ? testEvent(inboxRef, name) : stored;
    const done = await deliver(deps, subscription, { lane, ref: inboxRef, attempts, lapses }, '', atMs, cached);
    const { outcome, attempted, dueMs, record, attempt: text, responseBody, responseTruncated } = done;
    return {
      lane,
      ref,
      outcome,
      ...noteOf(record, text),
      ...(attempted === undefined ? {} : { attempted }),
      ...(dueMs === undefined ? {} : { dueMs }),
      ...(responseBody === undefined ? {} : { responseBody }),
      ...(responseTruncated === undefined ? {} : { responseTruncated }),
    };
  };
}

/** Metadata of an event; without an id of its sender it has the one that is made of its position. */
function metaOf(part: Part, stored: string, groupKey: string, ref: string, inboxRef: string) {
  const meta = parseEventMeta(stored, groupKey, inboxRef);
  return (meta.id as string | undefined) === undefined ? { ...meta, id: eventIdOf(part, ref) } : meta;
}
