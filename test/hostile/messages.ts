/** A request of a flood. */
export interface FloodRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/**
 * How a flood uses its connections: to send requests as fast as possible, to send a byte of a request every few
 * seconds, to complete TLS handshakes, or to begin TLS handshakes. All but the first replace connections that are
 * closed.
 */
export type Manner = 'requests' | 'slow' | 'handshakes' | 'unfinished handshakes';

/** A flood of a server, and the number of connections. */
export interface Attack {
  readonly url: string;
  readonly manner: Manner;
  readonly requests: readonly FloodRequest[];
  readonly connections: number;
  readonly forMs: number;
}

/**
 * The number of responses by status and problem code, e.g. `429 rate_limited`. `none` means that the connection was
 * closed. The numbers of handshakes are also included.
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
