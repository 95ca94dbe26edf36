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
  /** Set on a dead letter that was recovered before. Only a replay delivers it again. */
  readonly recovered?: true;
}
