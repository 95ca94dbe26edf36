import type { HeldReason, NotRoutedReason } from './reasons.ts';

/**
 * The information that is needed to decide whether an event in a stream should be routed to an integration right now.
 */
export interface GateFacts {
  /** Empty or absent if the event has no group key. */
  readonly groupKey: string | undefined;
  readonly integration: 'pending' | 'active' | 'closed';
  /** True if an active activation exists for the group key. */
  readonly activated: boolean;
  /**
   * `none` if there is no admitted subscription to the stream. If there is one, this specifies whether the subscription
   * is routed or why it is held.
   */
  readonly subscription: 'none' | 'open' | HeldReason;
}

export interface GateVerdict {
  readonly wouldRoute: boolean;
  /** Undefined if and only if the event would be routed. */
  readonly reason: NotRoutedReason | HeldReason | undefined;
  /** True if the event would wait, and be routed when this reason no longer applies. */
  readonly held: boolean;
}

const refused = (reason: NotRoutedReason): GateVerdict => ({ wouldRoute: false, reason, held: false });

/**
 * Evaluates the gate for an event. The reason closest to the integration's own state takes precedence. If the group key
 * of an event is not active, the event will not be delivered to the integration. The same applies while its
 * subscription is held.
 */
export function judgeGate({ groupKey = '', integration, activated, subscription }: GateFacts): GateVerdict {
  if (groupKey === '') return refused('missing_group_key');
  if (integration === 'closed') return refused('integration_closed');
  if (integration === 'pending') return refused('integration_pending');
  if (subscription === 'none') return refused('not_subscribed');
  if (subscription === 'state_missing') return { wouldRoute: false, reason: subscription, held: true };
  if (!activated) return refused('not_activated');
  if (subscription !== 'open') return { wouldRoute: false, reason: subscription, held: true };
  return { wouldRoute: true, reason: undefined, held: false };
}
