/** How far back a series reaches: the last hour, day or week. */
export const HISTORIES = ['1h', '24h', '7d'] as const;
export type History = (typeof HISTORIES)[number];

const MINUTE_MS = 60_000;

/** Ring of buckets that a series is read from: its letter in Redis, the width of a bucket, how many Redis keeps. */
export interface Ring {
  readonly letter: 'm' | 'q' | 'h';
  readonly granularitySeconds: number;
  readonly slots: number;
  /** Buckets of a series; the last one is that of now. */
  readonly buckets: number;
}

export const RINGS: Readonly<Record<History, Ring>> = {
  '1h': { letter: 'm', granularitySeconds: 60, slots: 61, buckets: 60 },
  '24h': { letter: 'q', granularitySeconds: 900, slots: 97, buckets: 96 },
  '7d': { letter: 'h', granularitySeconds: 3_600, slots: 169, buckets: 168 },
};

/** What was counted in one bucket. */
export interface Traffic {
  /** Events that ingress accepted; repetitions of an id are none. */
  readonly eventsIn: number;
  /** First deliveries that succeeded, one an event and integration. */
  readonly deliveries: number;
  /** Attempts of first deliveries that failed. */
  readonly failures: number;
  /** Events that went to no integration. */
  readonly notRouted: number;
  /** Of the bodies of the accepted events. */
  readonly bytes: number;
  readonly tokens: number;
}

/** In the order in which Redis keeps them. */
const COLUMNS = ['eventsIn', 'deliveries', 'failures', 'notRouted', 'bytes', 'tokens'] as const;
const NOTHING: Traffic = { eventsIn: 0, deliveries: 0, failures: 0, notRouted: 0, bytes: 0, tokens: 0 };

export interface Bucket extends Traffic {
  /** When it begins, ms. */
  readonly startMs: number;
}

/** The part of time that a series covers: whole buckets, aligned in UTC. `endMs` is the end of the bucket of now. */
export interface Window {
  readonly startMs: number;
  readonly endMs: number;
}

export function windowOf({ granularitySeconds, buckets }: Ring, nowMs: number): Window {
  const widthMs = granularitySeconds * 1_000;
  const endMs = (Math.floor(nowMs / widthMs) + 1) * widthMs;
  return { startMs: endMs - buckets * widthMs, endMs };
}

/** Where the buckets of a window lie in Redis, in order. */
export function slotsOf(ring: Ring, { startMs }: Window): string[] {
  const first = startMs / (ring.granularitySeconds * 1_000);
  return Array.from({ length: ring.buckets }, (_, i) => `${ring.letter}${(first + i) % ring.slots}`);
}

/**
 * The series from what Redis keeps in the window's slots, `<index> <count>*` each: where a slot holds another bucket or
 * nothing, nothing was counted.
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

/** UTC hours (since 1970) that cover a history wholly, up to the one of now. */
export function hoursOf(history: History, nowMs: number): number[] {
  const { granularitySeconds, buckets } = RINGS[history];
  const last = Math.floor(nowMs / (60 * MINUTE_MS));
  const first = Math.floor((nowMs - granularitySeconds * buckets * 1_000) / (60 * MINUTE_MS));
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}
