import type { EventProgress } from '../events/event-state.ts';
import { isAfter } from '../ids/refs.ts';
import type { NotRoutedReason } from './reasons.ts';

/** An older event is only routed if its group key was active when the event was accepted (`route.lua`). */
export const YOUNG_MS = 10_000;
/** The maximum clock difference for this check. */
const GRACE_MS = 2_000;

/** The data in Redis about an event and an integration. */
export interface DispositionFacts {
  /** Stream id of the event in its queue. */
  readonly id: string;
  readonly groupKey: string;
  /** The router's position in the queue. */
  readonly cursor: string;
  readonly integration: 'pending' | 'active' | 'closed';
  /** undefined: the integration has no subscription to the queue. */
  readonly subscription: { readonly behindAt: string | undefined } | undefined;
  /** Activation time of the group key for the integration, ms; undefined: not active. */
  readonly activatedSinceMs: number | undefined;
  /** Redis's clock, ms. */
  readonly nowMs: number;
  /** The progress of the event in the inbox, or undefined if the event was not added to the inbox. */
  readonly progress: EventProgress | undefined;
  /** The reason that the router recorded, if the event was not routed. */
  readonly noted: NotRoutedReason | undefined;
}

/**
 * The value is routed if the event is or was in the inbox, waiting if it can still be routed, and not_routed if it will
 * not be routed.
 */
export interface EventDisposition {
  readonly disposition: 'routed' | 'waiting' | 'not_routed';
  readonly progress?: EventProgress;
  /** Only if not routed. */
  readonly reason?: NotRoutedReason;
}

/**
 * Returns the routing result of an event for an integration. The router records a reason for integrations that were
 * subscribed when the event was routed. For all other integrations, the reason is the current state.
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

/** Returns whether the group key was activated too late for this event. */
function isTooLate({ id, activatedSinceMs = Number.POSITIVE_INFINITY, nowMs }: DispositionFacts): boolean {
  const acceptedMs = Number.parseInt(id, 10);
  return nowMs - acceptedMs > YOUNG_MS && acceptedMs < activatedSinceMs - GRACE_MS;
}
