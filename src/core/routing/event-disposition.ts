import type { EventProgress } from '../events/event-state.ts';
import { isAfter } from '../ids/refs.ts';
import type { NotRoutedReason } from './reasons.ts';

/** Anything older is only routed if its group key was already active when the event was accepted. */
export const YOUNG_MS = 10_000;
/** Maximum clock difference for this check. */
const GRACE_MS = 2_000;

/** State of an event and an integration in Redis. */
export interface DispositionFacts {
  /** Stream id of the event in its log. */
  readonly id: string;
  readonly groupKey: string;
  /** How far the log has been routed. */
  readonly cursor: string;
  readonly integration: 'pending' | 'active' | 'closed';
  /** Undefined if the integration isn't subscribed to the stream. */
  readonly subscription: { readonly behindAt: string | undefined } | undefined;
  /** When the group key was activated for the integration, in ms. Undefined if not active. */
  readonly activatedSinceMs: number | undefined;
  /** Redis clock, in ms. */
  readonly nowMs: number;
  /** Progress of the event in the inbox, or undefined if it was never added there. */
  readonly progress: EventProgress | undefined;
  /** Reason recorded when the event wasn't routed. */
  readonly noted: NotRoutedReason | undefined;
}

/**
 * One of routed (the event is or was in the inbox), waiting (it can still be routed), and not_routed (it never will
 * be).
 */
export interface EventDisposition {
  readonly disposition: 'routed' | 'waiting' | 'not_routed';
  readonly progress?: EventProgress;
  /** Only present if the event wasn't routed. */
  readonly reason?: NotRoutedReason;
}

/**
 * Returns the outcome of an event for an integration. If the integration was subscribed when the event was routed, a
 * reason will have been recorded. For any other integration, the reason is its current state.
 */
export function dispositionOf(facts: DispositionFacts): EventDisposition {
  const { id, groupKey, cursor, integration, subscription, progress, noted } = facts;
  if (progress !== undefined) return { disposition: 'routed', progress };
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

/** Returns true if the group key was activated too late for this event. */
function isTooLate({ id, activatedSinceMs = Number.POSITIVE_INFINITY, nowMs }: DispositionFacts): boolean {
  const acceptedMs = Number.parseInt(id, 10);
  return nowMs - acceptedMs > YOUNG_MS && acceptedMs < activatedSinceMs - GRACE_MS;
}
