/** Why an event isn't routed to an integration. */
export const NOT_ROUTED = [
  'missing_group_key',
  'not_activated',
  'not_subscribed',
  'integration_pending',
  'integration_closed',
  'skipped_to_now',
  'expired',
] as const;

export type NotRoutedReason = (typeof NOT_ROUTED)[number];

/**
 * Reasons counted for producers, in the order of the counts in Redis. Integrations without an open subscription are not
 * counted, so the other reasons never appear there.
 */
export const COUNTED = [
  'missing_group_key',
  'not_activated',
  'skipped_to_now',
  'expired',
] as const satisfies readonly NotRoutedReason[];

export type CountedReason = (typeof COUNTED)[number];

/**
 * Why an event is waiting in its queue for an integration. Once the reason ends, it will proceed, provided that this is
 * within the retention. If a stream is covered by several Blocks, one for the stream itself comes first. Redis can't
 * tell the first three apart and only knows `paused`. `state_missing` means that Redis lost the state, which is
 * currently being rebuilt.
 */
export const HELD = [
  'blocked_stream',
  'blocked_package',
  'suspended',
  'paused',
  'insufficient_tokens',
  'state_missing',
] as const;

export type HeldReason = (typeof HELD)[number];
