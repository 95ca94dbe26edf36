import type { EventProgress } from './event-state.ts';
import type { NotRoutedReason } from './reasons.ts';
import { isAfter } from './refs.ts';

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
  if (isAfter(id, passed) && subscription !== undefined) return { fate: 'waiting' };
  if (integration === 'closed') return { fate: 'not_routed', reason: 'integration_closed' };
  if (integration === 'pending') return { fate: 'not_routed', reason: 'integration_pending' };
  return isAfter(id, passed) ? { fate: 'waiting' } : { fate: 'not_routed', reason: 'not_subscribed' };
}
