import type { Bucket, History } from '../core/events/series.ts';
import type { CountedReason } from '../core/routing/reasons.ts';

/** Reads what was counted for producers. Changes nothing. */
export interface TrafficReader {
  /** A producer's series, up to the bucket of now, without gaps; one command. */
  readonly readSeries: (tenant: string, history: History, nowMs: number) => Promise<readonly Bucket[]>;
  /**
   * How often integrations that subscribe to a queue did not get an event of it, by reason, in each of the UTC hours that
   * cover the history (2, 25 or 169); `missing_group_key` counts events. Two commands.
   */
  readonly readReasons: (
    tenant: string,
    queue: string,
    history: History,
    nowMs: number,
  ) => Promise<readonly { readonly startMs: number; readonly reasons: Readonly<Record<CountedReason, number>> }[]>;
}
