/** The time range of a series, which can be the last hour, day, or week. */
export const HISTORIES = ['1h', '24h', '7d'] as const;
export type History = (typeof HISTORIES)[number];

const MINUTE_MS = 60_000;

/**
 * The ring of buckets that is used to store a series. Includes its letter in Redis, the bucket width, and the number of
 * buckets kept in Redis.
 */
interface Ring {
  readonly letter: 'm' | 'q' | 'h';
  readonly granularitySeconds: number;
  readonly slots: number;
  /** The number of buckets in a series. The last bucket is the current one. */
  readonly buckets: number;
}

export const RINGS: Readonly<Record<History, Ring>> = {
  '1h': { letter: 'm', granularitySeconds: 60, slots: 61, buckets: 60 },
  '24h': { letter: 'q', granularitySeconds: 900, slots: 97, buckets: 96 },
  '7d': { letter: 'h', granularitySeconds: 3_600, slots: 169, buckets: 168 },
};

/** The counts for a single bucket. */
export interface Traffic {
  /** The number of events accepted by ingress, not counting repeated ids. */
  readonly eventsIn: number;
  /** The number of successful first deliveries, for each event and integration. */
  readonly deliveries: number;
  /** The number of failed attempts of first deliveries. */
  readonly failures: number;
  /** The number of events that were not routed to any integration. */
  readonly notRouted: number;
  /** Total body size of accepted events in bytes. */
  readonly bytes: number;
  readonly tokens: number;
}

/** The counts, in the same order as in Redis. */
const COLUMNS = ['eventsIn', 'deliveries', 'failures', 'notRouted', 'bytes', 'tokens'] as const;
const NOTHING: Traffic = { eventsIn: 0, deliveries: 0, failures: 0, notRouted: 0, bytes: 0, tokens: 0 };

export interface Bucket extends Traffic {
  /** The start time of the bucket, in milliseconds. */
  readonly startMs: number;
}

/**
 * The time window of a series. The window consists of whole buckets that are aligned to UTC. The end of the current
 * bucket is `endMs`.
 */
interface Window {
  readonly startMs: number;
  readonly endMs: number;
}

export function windowOf({ granularitySeconds, buckets }: Ring, nowMs: number): Window {
  const widthMs = granularitySeconds * 1_000;
  const endMs = (Math.floor(nowMs / widthMs) + 1) * widthMs;
  return { startMs: endMs - buckets * widthMs, endMs };
}

/** Returns the slots in Redis for the buckets of a window, in order. */
export function slotsOf(ring: Ring, { startMs }: Window): string[] {
  const first = startMs / (ring.granularitySeconds * 1_000);
  return Array.from({ length: ring.buckets }, (_, i) => `${ring.letter}${(first + i) % ring.slots}`);
}

/**
 * Creates the series from its slots in Redis. Each slot has the format `<index> <count>*`. Counts will be zero for an
 * empty slot or one containing another bucket.
 */
export function seriesOf(ring: Ring, { startMs }: Window, texts: readonly (string | null)[]): Bucket[] {
  const widthMs = ring.granularitySeconds * 1_000;
  return texts.map((text, i) => {
    const bucketMs = startMs + i * widthMs;
    const [index, ...counts] = text === null ? [] : text.split(' ').map(Number);
    if (index !== bucketMs / widthMs) return { startMs: bucketMs, ...NOTHING };
    const traffic = Object.fromEntries(COLUMNS.map((column, at) => [column, counts[at] ?? 0]));
    return { startMs: bucketMs, ...(traffic as Record<(typeof COLUMNS)[number], number>) };
  });
}

/** Returns the UTC hours (since 1970) needed to cover a time range completely, up to the current one. */
export function hoursOf(history: History, nowMs: number): number[] {
  const { granularitySeconds, buckets } = RINGS[history];
  const last = Math.floor(nowMs / (60 * MINUTE_MS));
  const first = Math.floor((nowMs - granularitySeconds * buckets * 1_000) / (60 * MINUTE_MS));
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}
