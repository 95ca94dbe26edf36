/**
 * The commands of the load generator and of the receiver, which are the programs in the folder `load`. Times are in µs
 * of the monotonic clock, which is the same for all processes.
 */

/** The number of group keys of the events. */
export const GROUP_KEYS = 100;

export function groupKey(key: number): string {
  return `key-${String(key).padStart(3, '0')}`;
}

/** Where to send events. The headers are sent in the order of their names. */
export interface Target {
  readonly port: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** The input of the generator's command `closed`. */
export interface ClosedLoop {
  readonly target: Target;
  readonly run: number;
  readonly connections: number;
  readonly durationMs: number;
}

/** The input of the generator's command `open`. */
export interface OpenLoop {
  readonly target: Target;
  readonly run: number;
  readonly connections: number;
  /** Events per second, evenly spaced and independent of the responses. */
  readonly rate: number;
  readonly count: number;
  /** The number of the first event, which is a multiple of the number of group keys. Default: 0. */
  readonly first?: number;
  /** The time to wait for responses after the last planned time. */
  readonly patienceMs: number;
  /** Whether to return the time of each response. */
  readonly timed?: boolean;
}

export interface Sent {
  readonly accepted: number;
  readonly refused: number;
  readonly elapsedMs: number;
  /** The planned time of the last event (open loop), or the time after which no events are sent. */
  readonly endUs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** The time of the response to each event, or null. Only present if `timed` is set. */
  readonly answeredUs?: (number | null)[];
}

/**
 * - hangs: accepts connections but never responds.
 * - slow: responds after `slowMs`.
 * - dead: no process listens on the port.
 * - resets: closes the connection when a request has arrived.
 * - flooded: healthy, but receives unexpected events.
 */
export type Sickness = 'hangs' | 'slow' | 'dead' | 'resets' | 'flooded';

/** The input of the receiver's command `begin`. */
export interface Expectation {
  readonly run: number;
  /** The number of events for each endpoint. */
  readonly events: number;
  /** The number of endpoints in this run. */
  readonly endpoints: number;
  /** The number of endpoints, from the first one, whose latency is measured. */
  readonly observed: number;
  /** The sicknesses of the last endpoints. */
  readonly sick: readonly Sickness[];
  /** The time that slow endpoints take to respond. Required if there is a slow endpoint. */
  readonly slowMs?: number;
  /** Whether to return the time of each arrival. */
  readonly timed?: boolean;
}

/** The deliveries that have arrived at healthy endpoints, returned by the receiver's command `finish`. */
export interface Received {
  readonly complete: boolean;
  readonly unique: number;
  readonly expected: number;
  readonly duplicates: number;
  /** The number of events that arrived at an endpoint after a later event with the same group key. */
  readonly outOfOrder: number;
  /** The time of the last arrival. */
  readonly lastUs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** The time of each arrival, or null, by endpoint and event. Only present if `timed` is set. */
  readonly arrivedUs?: (number | null)[][];
}

/** The arrivals since the last reset, returned by the receiver's command `look`. */
export interface Look {
  /** The latency of the observed endpoints. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly endpoints: readonly {
    /** The number of arrivals since the start of the run. */
    readonly unique: number;
    /** The longest time without an arrival. */
    readonly gapMs: number;
  }[];
}
