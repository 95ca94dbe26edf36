/**
 * Why an event wasn't routed to an integration. Keys are used for metrics and answers. In Redis we use the codes
 * instead, storing a single letter per integration and event.
 */
export const NOT_ROUTED = {
  missing_group_key: 'm',
  not_activated: 'a',
  not_subscribed: 's',
  integration_pending: 'p',
  integration_closed: 'c',
  skipped_to_now: 'k',
  expired: 'e',
} as const;

export type NotRoutedReason = keyof typeof NOT_ROUTED;

const WORDS = new Map(Object.entries(NOT_ROUTED).map(([word, code]) => [code as string, word as NotRoutedReason]));

/** Returns the reason for a stored code, or undefined for a code this version doesn't know. */
export function notRoutedReason(code: string): NotRoutedReason | undefined {
  return WORDS.get(code);
}

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
