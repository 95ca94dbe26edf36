/** Where an event is, for one subscription. */
export const EVENT_STATES = ['pending', 'inflight', 'retrying', 'delivered', 'dead', 'skipped', 'expired'] as const;
export type EventState = (typeof EVENT_STATES)[number];

/** States in which it still waits to be delivered. */
export const OPEN_STATES: readonly EventState[] = ['pending', 'inflight', 'retrying'];

/** One HTTP try. */
export interface Attempt {
  /** When it ended, ms. */
  readonly atMs: number;
  /** HTTP status, or one word that says why there was none. */
  readonly result: string;
  readonly latencyMs: number;
}

/** What is known of one delivery of an event. */
export interface EventProgress {
  readonly state: EventState;
  /** How many attempts were made. */
  readonly attempts: number;
  /** The last of them (20 that failed, and the one that ended it), oldest first. */
  readonly history: readonly Attempt[];
  /** Of a retrying one: when the next attempt is due, ms; absent while its endpoint is to be enabled first. */
  readonly dueMs?: number;
  /** Of one that ended: when (ms), and by what: a status, or a word. */
  readonly endedMs?: number;
  readonly reason?: string;
}

/**
 * Reads what Redis keeps of a delivery: `<pending|inflight|retrying> <attempts> <lapses> <due ms>` or the record
 * `<outcome> <ms> <attempts> <reason> <latency ms, or ->`, each followed by the attempts that failed, (`<ms>,<result>,<latency ms>`)*.
 */
export function parseEventProgress(text: string): EventProgress {
  const [state = '', first = '', second = '', third = '', ...rest] = text.split(' ');
  if (OPEN_STATES.includes(state as EventState)) {
    const progress = { state: state as EventState, attempts: Number(first), history: rest.map(parseAttempt) };
    // After 410 there is no time: it is when the endpoint is enabled again.
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
