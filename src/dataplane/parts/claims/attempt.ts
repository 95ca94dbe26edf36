import { type EventMeta, parseEventMeta } from '../../../core/events/event-meta.ts';
import { isTestRef, testEvent } from '../../../core/events/test-event.ts';
import { refMs } from '../../../core/ids/refs.ts';
import type { Completion } from '../../../part/claims/exchange.ts';
import { inboxRefOf } from '../../../part/inbox/ref-names.ts';
import type { Part } from '../../../part/keys.ts';
import { eventIdOf } from '../../../part/log/event-id.ts';
import { type DeliverDeps, deliver, type StoredEvent } from '../../dispatcher/deliver.ts';
import { eventHeaders } from '../../dispatcher/headers.ts';
import type { HeldClaim, HeldEvent, KnownEvent } from './held-claim.ts';
import type { OpenedSlot } from './opened-slots.ts';

/**
 * Makes at most a single attempt for a claim. For test events (which are not stored) and for expired events, `body` is
 * undefined. Never rejects.
 */
export type Attempt = (
  slot: Pick<OpenedSlot, 'name' | 'subscription'>,
  held: HeldClaim,
  body: Buffer | undefined,
) => Promise<Completion>;

function testEventOf(inboxRef: string, subscription: string): StoredEvent {
  const { meta, body } = testEvent(inboxRef, subscription);
  return { meta, headers: eventHeaders(meta), body };
}

export function createAttempt(deps: DeliverDeps, part: Part): Attempt {
  function learn(event: HeldEvent, ref: string): KnownEvent {
    const inboxRef = inboxRefOf(ref);
    const isTest = isTestRef(inboxRef);
    const meta = isTest || event.size === undefined ? undefined : metaOf(event, ref, inboxRef);
    return { inboxRef, isTest, acceptedMs: refMs(inboxRef), sent: meta && { meta, headers: eventHeaders(meta) } };
  }

  /** The event metadata. If the producer didn't set an id, it contains the generated id. */
  function metaOf({ meta: stored, groupKey }: HeldEvent, ref: string, inboxRef: string): EventMeta {
    const meta = parseEventMeta(stored, groupKey, inboxRef);
    return (meta.id as string | undefined) === undefined ? { ...meta, id: eventIdOf(part, ref) } : meta;
  }

  return async function attempt({ name, subscription }, { claim, event, atMs }, body) {
    const { lane, ref, attempts, lapses, replay } = claim;
    event.known ??= learn(event, ref);
    const { inboxRef, isTest, acceptedMs, sent } = event.known;
    const stored = isTest ? testEventOf(inboxRef, name) : sent && body && { ...sent, body };
    const delivery = { attempts, lapses, replay, isTest, acceptedMs, claimedAtMs: atMs };
    return { lane, ref, ...(await deliver(deps, subscription, delivery, stored)) };
  };
}
