/** The reason why an event is not routed to an integration. */
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
 * The reasons counted for producers, in the same order as the counts in Redis. Integrations without an open
 * subscription are not counted, so the other reasons never occur.
 */
export const COUNTED = [
  'missing_group_key',
  'not_activated',
  'skipped_to_now',
  'expired',
] as const satisfies readonly NotRoutedReason[];

export type CountedReason = (typeof COUNTED)[number];

/**
 * The reason why an event has to wait in its queue for an integration. Once the reason ends, it will proceed, provided
 * that this is within the retention. If several Blocks apply to a stream, the one for the stream itself is used first.
 * In Redis, the first three reasons are all represented as `paused`. `state_missing` means that Redis lost the state,
 * which is currently being rebuilt.
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
