import { type EventMeta, parseEventMeta } from '../../core/events/event-meta.ts';
import { isTestRef, testEvent } from '../../core/events/test-event.ts';
import { refMs } from '../../core/ids/refs.ts';
import type { Completion } from '../../part/claims/exchange.ts';
import type { ClaimedEvent } from '../../part/claims/message.ts';
import { inboxRefOf } from '../../part/inbox/ref-names.ts';
import type { Part } from '../../part/keys.ts';
import { eventIdOf } from '../../part/log/event-id.ts';
import { type DeliverDeps, deliver } from '../dispatcher/deliver.ts';
import type { HeldClaim } from './held-claim.ts';
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

/** The data of an event that is shared by all of its subscriptions. */
interface Known {
  readonly inboxRef: string;
  readonly isTest: boolean;
  readonly acceptedMs: number;
  /** For test events, this is undefined. */
  readonly meta: EventMeta | undefined;
}

export function createAttempt(deps: DeliverDeps, part: Part): Attempt {
  const known = new WeakMap<ClaimedEvent, Known>();

  function learn(event: ClaimedEvent, ref: string): Known {
    const inboxRef = inboxRefOf(ref);
    const isTest = isTestRef(inboxRef);
    const meta = isTest || event.size === undefined ? undefined : metaOf(event, ref, inboxRef);
    const made = { inboxRef, isTest, acceptedMs: refMs(inboxRef), meta };
    known.set(event, made);
    return made;
  }

  /** The event metadata. If the producer didn't set an id, it contains the generated id. */
  function metaOf({ meta: stored, groupKey }: ClaimedEvent, ref: string, inboxRef: string): EventMeta {
    const meta = parseEventMeta(stored, groupKey, inboxRef);
    return (meta.id as string | undefined) === undefined ? { ...meta, id: eventIdOf(part, ref) } : meta;
  }

  return async function attempt({ name, subscription }, { claim, event, atMs }, body) {
    const { lane, ref, attempts, lapses, replay } = claim;
    const { inboxRef, isTest, acceptedMs, meta } = known.get(event) ?? learn(event, ref);
    const stored = isTest ? testEvent(inboxRef, name) : meta && body && { meta, body };
    const delivery = { attempts, lapses, replay, isTest, acceptedMs, claimedAtMs: atMs };
    return { lane, ref, ...(await deliver(deps, subscription, delivery, stored)) };
  };
}
