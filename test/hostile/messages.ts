/** A request of a flood. */
export interface FloodRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** The requests sent by the attacker as fast as possible, and the number of connections. */
export interface Attack {
  readonly url: string;
  readonly requests: readonly FloodRequest[];
  readonly connections: number;
  readonly forMs: number;
}

/**
 * The number of responses by status and problem code, e.g. `429 rate_limited`. `none` means that the connection was
 * closed.
 */
export type Answers = Readonly<Record<string, number>>;

/** How the neighbor accesses its workspace. */
export interface NeighbourSettings {
  readonly facadeUrl: string;
  readonly ingressUrl: string;
  /** The path of its stream, `/events/{tenant}/{queue}`. */
  readonly eventsPath: string;
  readonly ingressKey: string;
  readonly groupKey: string;
  readonly token: string;
  /** Public id `ten_…`. */
  readonly tenant: string;
  readonly stream: string;
}

/** Latencies in milliseconds, and responses. */
export interface Latencies {
  readonly p50: number;
  readonly p99: number;
  readonly answers: Answers;
}

/** The measurements of the neighbor: its reads and changes using REST, and the time between a 202 and the delivery. */
export interface NeighbourFigures {
  readonly reads: Latencies;
  readonly changes: Latencies;
  readonly deliveries: Latencies;
  /** The number of accepted events that did not arrive. */
  readonly missing: number;
}
