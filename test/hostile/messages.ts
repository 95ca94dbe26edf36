/** A request of a flood. */
export interface FloodRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** What the attacker sends: the requests in turn, over this many connections, as fast as they are answered. */
export interface Attack {
  readonly url: string;
  readonly requests: readonly FloodRequest[];
  readonly connections: number;
  readonly forMs: number;
}

/** Number of answers by status and problem code, e.g. `429 rate_limited`. `none` means that the connection was closed. */
export type Answers = Readonly<Record<string, number>>;

/** How the neighbour reaches its workspace. */
export interface NeighbourSettings {
  readonly facadeUrl: string;
  readonly ingressUrl: string;
  /** Path of its stream, `/events/{tenant}/{queue}`. */
  readonly eventsPath: string;
  readonly ingressKey: string;
  readonly groupKey: string;
  readonly token: string;
  /** Public id `ten_…`. */
  readonly tenant: string;
  readonly stream: string;
}

/** Latencies in ms, and answers. */
export interface Latencies {
  readonly p50: number;
  readonly p99: number;
  readonly answers: Answers;
}

/** What the neighbour measured: its reads and changes over REST, and the time from a 202 to the delivery. */
export interface NeighbourFigures {
  readonly reads: Latencies;
  readonly changes: Latencies;
  readonly deliveries: Latencies;
  /** Number of accepted events that did not arrive. */
  readonly missing: number;
}
