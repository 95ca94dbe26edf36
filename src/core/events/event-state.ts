/** The event state for a given subscription. */
export const EVENT_STATES = ['pending', 'inflight', 'retrying', 'delivered', 'dead', 'skipped', 'expired'] as const;
export type EventState = (typeof EVENT_STATES)[number];

/** The states of events waiting to be delivered. */
export const OPEN_STATES: readonly EventState[] = ['pending', 'inflight', 'retrying'];

/** An HTTP attempt. */
interface Attempt {
  /** The time at which the attempt ended, in milliseconds. */
  readonly atMs: number;
  /** The HTTP status. If there was no response, this is a reason code. */
  readonly result: string;
  readonly latencyMs: number;
}

/** The delivery progress. */
export interface EventProgress {
  readonly state: EventState;
  /** The number of attempts that have been made so far. */
  readonly attempts: number;
  /**
   * The last 20 failed attempts, and the attempt that ended the delivery. Oldest first. If the delivery ended during an
   * attempt, this includes the attempt.
   */
  readonly history: readonly Attempt[];
  /**
   * The time of the next attempt, in milliseconds. Only present if the event is being retried and the endpoint is not
   * disabled.
   */
  readonly dueMs?: number;
  /**
   * The time at which the delivery ended (in milliseconds), and the reason for this (which is an HTTP status or a
   * reason code). Only present if the delivery has ended.
   */
  readonly endedMs?: number;
  readonly reason?: string;
  /** Set on a dead letter that was recovered before. After that, it can only be delivered again by a replay. */
  readonly recovered?: true;
}
