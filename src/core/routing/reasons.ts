/**
 * Why an event did not go to an integration. The codes are what Redis keeps (one letter an integration and event),
 * the words what users read in metrics and answers.
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

/** The word of a stored code; undefined for a code that this version does not know. */
export function notRoutedReason(code: string): NotRoutedReason | undefined {
  return WORDS.get(code);
}

/**
 * Why an event waits in its queue for an integration: it goes on by itself when the reason ends, as far as the retention
 * reaches. Of a stream that several Blocks cover, one of the stream itself is told first. `paused` is what Redis knows of the
 * first three; `state_missing`: Redis has lost what decides, and it is rebuilt.
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
