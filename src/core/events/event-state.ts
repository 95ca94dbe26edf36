/** State of an event for one subscription. */
export const EVENT_STATES = ['pending', 'inflight', 'retrying', 'delivered', 'dead', 'skipped', 'expired'] as const;
export type EventState = (typeof EVENT_STATES)[number];

/** States of events that still wait for delivery. */
export const OPEN_STATES: readonly EventState[] = ['pending', 'inflight', 'retrying'];

/** One HTTP attempt. */
interface Attempt {
  /** When the attempt ended, ms. */
  readonly atMs: number;
  /** HTTP status, or a reason code if there was no answer. */
  readonly result: string;
  readonly latencyMs: number;
}

/** The progress of one delivery of an event. */
export interface EventProgress {
  readonly state: EventState;
  /** Number of attempts so far. */
  readonly attempts: number;
  /** The last attempts, oldest first: 20 that failed, and the one that ended the delivery. */
  readonly history: readonly Attempt[];
  /** Only while retrying: when the next attempt is due, ms; absent while the endpoint is disabled. */
  readonly dueMs?: number;
  /** Only if ended: when (ms), and why (an HTTP status or a reason code). */
  readonly endedMs?: number;
  readonly reason?: string;
}

/**
 * Reads the progress of a delivery from Redis: `<pending|inflight|retrying> <attempts> <lapses> <due ms>` or the
 * record `<outcome> <ms> <attempts> <reason> <latency ms, or ->`, each followed by the failed attempts,
 * (`<ms>,<result>,<latency ms>`)*.
 */
export function parseEventProgress(text: string): EventProgress {
  const [state = '', first = '', second = '', third = '', ...rest] = text.split(' ');
  if (OPEN_STATES.includes(state as EventState)) {
    const progress = { state: state as EventState, attempts: Number(first), history: rest.map(parseAttempt) };
    // After a 410 there is no due time until the endpoint is enabled again.
    return state === 'retrying' && third !== '0' ? { ...progress, dueMs: Number(third) } : progress;
  }
  const [latency = '-', ...failed] = rest;
  const endedMs = Number(first);
  const history = failed.map(parseAttempt);
  if (latency !== '-') history.push({ atMs: endedMs, result: third, latencyMs: Number(latency) });
  return { state: state as EventState, attempts: Number(second), history, endedMs, reason: third };
}

function parseAttempt(text: string): Attempt {
  const [ms, result = '', latency] = text.split(',');
  return { atMs: Number(ms), result, latencyMs: Number(latency) };
}
