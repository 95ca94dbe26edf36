import type { Bucket, History } from '../core/events/series.ts';
import type { CountedReason } from '../core/routing/reasons.ts';

/** Reads the producer counts. Read-only. */
export interface TrafficReader {
  /** Returns the series of a producer without any gaps. The last bucket is the current one. Uses a single command. */
  readonly readSeries: (tenant: string, history: History, nowMs: number) => Promise<readonly Bucket[]>;
  /**
   * The number of times that subscribed integrations did not receive an event of a queue, by reason and UTC hour of the
   * history (2, 25 or 169 hours). `missing_group_key` is the number of events. Uses two commands.
   */
  readonly readReasons: (
    tenant: string,
    queue: string,
    history: History,
    nowMs: number,
  ) => Promise<readonly { readonly startMs: number; readonly reasons: Readonly<Record<CountedReason, number>> }[]>;
}
