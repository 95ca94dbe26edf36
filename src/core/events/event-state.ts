/** State of an event for a particular subscription. */
export const EVENT_STATES = ['pending', 'inflight', 'retrying', 'delivered', 'dead', 'skipped', 'expired'] as const;
export type EventState = (typeof EVENT_STATES)[number];

/** States of events waiting to be delivered. */
export const OPEN_STATES: readonly EventState[] = ['pending', 'inflight', 'retrying'];

/** An HTTP attempt. */
interface Attempt {
  /** When the attempt ended, in milliseconds. */
  readonly atMs: number;
  /** HTTP status, or a reason code if there was no response. */
  readonly result: string;
  readonly latencyMs: number;
}

/** Progress of a delivery. */
export interface EventProgress {
  readonly state: EventState;
  /** Number of attempts made so far. */
  readonly attempts: number;
  /** Last 20 failed attempts, and the attempt that ended the delivery. Oldest first. */
  readonly history: readonly Attempt[];
  /**
   * Time of the next attempt in milliseconds. Only present while the event is being retried and its endpoint isn't
   * disabled.
   */
  readonly dueMs?: number;
  /**
   * When the delivery ended, in milliseconds, and why (an HTTP status or a reason code). Only present once it has
   * ended.
   */
  readonly endedMs?: number;
  readonly reason?: string;
}

/**
 * Reads a delivery's progress from Redis, which is either `<pending|inflight|retrying> <attempts> <lapses> <due ms>` or
 * the record `<outcome> <ms> <attempts> <reason> <latency ms, or ->`. Both are followed by the failed attempts,
 * (`<ms>,<result>,<latency ms>`)*.
 */
export function parseEventProgress(text: string): EventProgress {
  const [state = '', first = '', second = '', third = '', ...rest] = text.split(' ');
  if (OPEN_STATES.includes(state as EventState)) {
    const progress = { state: state as EventState, attempts: Number(first), history: rest.map(parseAttempt) };
    // After a 410 response, nothing is due until the endpoint is enabled again.
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
