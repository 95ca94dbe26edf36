import type { EventProgress } from '../events/event-state.ts';
import { isAfter } from '../ids/refs.ts';
import type { NotRoutedReason } from './reasons.ts';

/** Older events are only routed if their group key was already active when the event was accepted. */
export const YOUNG_MS = 10_000;
/** The maximum clock difference for this check. */
const GRACE_MS = 2_000;

/** The event state for an integration, as stored in Redis. */
export interface DispositionFacts {
  /** The stream id of the event in its log. */
  readonly id: string;
  readonly groupKey: string;
  /** The position up to which the log has been routed. */
  readonly cursor: string;
  readonly integration: 'pending' | 'active' | 'closed';
  /** Undefined if the integration does not have a subscription to the stream. */
  readonly subscription: { readonly behindAt: string | undefined } | undefined;
  /**
   * The time at which the group key was activated for the integration, in milliseconds. Undefined if it is not active.
   */
  readonly activatedSinceMs: number | undefined;
  /** The time of the Redis clock, in milliseconds. */
  readonly nowMs: number;
  /** The event progress in the inbox. Undefined if the event was never added to the inbox. */
  readonly progress: EventProgress | undefined;
  /**
   * True if it was added to the inbox of a subscription that was deleted since. The progress of this subscription may
   * have been removed.
   */
  readonly wasRouted?: boolean;
  /** Reason recorded when the event wasn't routed. */
  readonly noted: NotRoutedReason | undefined;
}

/**
 * One of routed (the event is or was in the inbox), waiting (it can still be routed), and not_routed (it never will
 * be).
 */
export interface EventDisposition {
  readonly disposition: 'routed' | 'waiting' | 'not_routed';
  /** If the event was routed and this is missing, the inbox has been removed. */
  readonly progress?: EventProgress;
  /** Only present if the event wasn't routed. */
  readonly reason?: NotRoutedReason;
}

/**
 * Returns the disposition of an event for the given integration. If the integration was subscribed when the event was
 * routed, a reason will have been recorded. For all other integrations, we use their current state as the reason.
 */
export function dispositionOf(facts: DispositionFacts): EventDisposition {
  const { id, groupKey, cursor, integration, subscription, progress, noted } = facts;
  if (progress !== undefined) return { disposition: 'routed', progress };
  if (facts.wasRouted === true) return { disposition: 'routed' };
  if (noted !== undefined) return { disposition: 'not_routed', reason: noted };
  if (groupKey === '') return { disposition: 'not_routed', reason: 'missing_group_key' };
  const passed = subscription?.behindAt ?? cursor;
  if (isAfter(id, passed) && subscription !== undefined) {
    return isTooLate(facts) ? { disposition: 'not_routed', reason: 'not_activated' } : { disposition: 'waiting' };
  }
  if (integration === 'closed') return { disposition: 'not_routed', reason: 'integration_closed' };
  if (integration === 'pending') return { disposition: 'not_routed', reason: 'integration_pending' };
  return isAfter(id, passed) ? { disposition: 'waiting' } : { disposition: 'not_routed', reason: 'not_subscribed' };
}

/** Returns true if the group key was not activated before the event was accepted. */
function isTooLate({ id, activatedSinceMs = Number.POSITIVE_INFINITY, nowMs }: DispositionFacts): boolean {
  const acceptedMs = Number.parseInt(id, 10);
  return nowMs - acceptedMs > YOUNG_MS && acceptedMs < activatedSinceMs - GRACE_MS;
}
