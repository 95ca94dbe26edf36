/**
 * Why an event did not go to an integration. The keys are for metrics and answers; the codes, one letter per
 * integration and event, are for Redis.
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

/** Returns the reason of a stored code; undefined for a code that this version does not know. */
export function notRoutedReason(code: string): NotRoutedReason | undefined {
  return WORDS.get(code);
}

/**
 * Why an event waits in its queue for an integration. It proceeds when the reason ends, within the retention. If
 * several Blocks cover a stream, a Block of the stream itself comes first. `paused` is all that Redis knows of the
 * first three. `state_missing`: Redis lost the state, which is being rebuilt.
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
