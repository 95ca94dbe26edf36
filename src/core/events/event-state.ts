/** The state of an event for one subscription. */
export const EVENT_STATES = ['pending', 'inflight', 'retrying', 'delivered', 'dead', 'skipped', 'expired'] as const;
export type EventState = (typeof EVENT_STATES)[number];

/** The states of events that are waiting for delivery. */
export const OPEN_STATES: readonly EventState[] = ['pending', 'inflight', 'retrying'];

/** An HTTP attempt. */
interface Attempt {
  /** The time when the attempt ended, in milliseconds. */
  readonly atMs: number;
  /** The HTTP status, or a reason code if there was no response. */
  readonly result: string;
  readonly latencyMs: number;
}

/** The progress of a delivery. */
export interface EventProgress {
  readonly state: EventState;
  /** The number of attempts that were made. */
  readonly attempts: number;
  /** The last 20 failed attempts and the attempt that ended the delivery, with the oldest attempt first. */
  readonly history: readonly Attempt[];
  /**
   * The time of the next attempt in milliseconds. It is only set while the event is retried and the endpoint is not
   * disabled.
   */
  readonly dueMs?: number;
  /**
   * The time when the delivery ended in milliseconds, and the reason (an HTTP status or a reason code). It is only set
   * after the delivery has ended.
   */
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
    // After a 410 response, there is no due time until the endpoint is enabled again.
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
