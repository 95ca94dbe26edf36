import type { EventProgress } from '../events/event-state.ts';
import { isAfter } from '../ids/refs.ts';
import type { NotRoutedReason } from './reasons.ts';

/** An event that is older when it is routed goes only where its key was active when it was accepted (`route.lua`). */
export const YOUNG_MS = 10_000;
/** How much clocks may differ there. */
const GRACE_MS = 2_000;

/** What Redis knows of one event and one integration. */
export interface FateFacts {
  /** Stream id of the event in its queue. */
  readonly id: string;
  readonly groupKey: string;
  /** How far the router has come in the queue. */
  readonly cursor: string;
  readonly integration: 'pending' | 'active' | 'closed';
  /** undefined: it has no subscription to the queue. */
  readonly subscription: { readonly behindAt: string | undefined } | undefined;
  /** Since when its group key is active for the integration, ms; undefined: it is not. */
  readonly activatedSinceMs: number | undefined;
  /** Redis's clock, ms. */
  readonly nowMs: number;
  /** What became of it in the inbox; undefined where it never was there. */
  readonly progress: EventProgress | undefined;
  /** What the router noted when it did not go there. */
  readonly noted: NotRoutedReason | undefined;
}

/** routed: it is or was in the inbox; waiting: it may come there yet; not_routed: it will not. */
export interface EventFate {
  readonly fate: 'routed' | 'waiting' | 'not_routed';
  readonly progress?: EventProgress;
  /** Of what was not routed. */
  readonly reason?: NotRoutedReason;
}

/**
 * Where an event went, for one integration. For those that were subscribed when it was routed the router has noted why it
 * did not go there; for others the reason is what holds now.
 */
export function fateOf(facts: FateFacts): EventFate {
  const { id, groupKey, cursor, integration, subscription, progress, noted } = facts;
  if (progress !== undefined) return { fate: 'routed', progress };
  if (noted !== undefined) return { fate: 'not_routed', reason: noted };
  if (groupKey === '') return { fate: 'not_routed', reason: 'missing_group_key' };
  const passed = subscription?.behindAt ?? cursor;
  if (isAfter(id, passed) && subscription !== undefined) {
    return isTooLate(facts) ? { fate: 'not_routed', reason: 'not_activated' } : { fate: 'waiting' };
  }
  if (integration === 'closed') return { fate: 'not_routed', reason: 'integration_closed' };
  if (integration === 'pending') return { fate: 'not_routed', reason: 'integration_pending' };
  return isAfter(id, passed) ? { fate: 'waiting' } : { fate: 'not_routed', reason: 'not_subscribed' };
}

/** Whether its key would have had to be active earlier than it is: no later activation brings it. */
function isTooLate({ id, activatedSinceMs = Number.POSITIVE_INFINITY, nowMs }: FateFacts): boolean {
  const acceptedMs = Number.parseInt(id, 10);
  return nowMs - acceptedMs > YOUNG_MS && acceptedMs < activatedSinceMs - GRACE_MS;
}
