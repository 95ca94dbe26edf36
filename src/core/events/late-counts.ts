import { type Bucket, type History, RINGS } from './series.ts';

/** The counts of a part, as they are stored in its hash, and up to which of them a series contains them. */
export interface LateCounts {
  /** a (arrived), or o (what has happened to events). */
  readonly kind: 'a' | 'o';
  /** `<begun>(;<minute> <a> <b> <c>)*`, or ''. */
  readonly text: string;
  /** `<begun> <minute> <a> <b> <c>`: the newest counts that were added. Undefined if there were none. */
  readonly mark: string | undefined;
}

/** The columns of the three counts. */
const COLUMNS = {
  a: ['eventsIn', 'bytes', 'tokens'],
  o: ['deliveries', 'failures', 'notRouted'],
} as const;

/**
 * Returns the counts that a series does not contain, by minute. This is the same as in `fold-traffic.lua`, which adds
 * them later.
 */
function* missingCounts({ text, mark }: LateCounts): Generator<readonly [minute: number, counts: readonly number[]]> {
  const [begun, ...minutes] = text.split(';');
  const [begunBefore, upTo = 0, ...added] = (mark ?? '').split(' ').map(Number);
  if (begunBefore !== undefined && begunBefore > Number(begun)) return;
  const isSame = begunBefore === Number(begun);
  for (const each of minutes) {
    const [minute = 0, ...counts] = each.split(' ').map(Number);
    if (!isSame || minute > upTo) yield [minute, counts];
    else if (minute === upTo) yield [minute, counts.map((count, i) => Math.max(0, count - (added[i] ?? 0)))];
  }
}

/** Adds the counts that a series does not contain yet. */
export function withLateCounts(
  history: History,
  buckets: readonly Bucket[],
  late: readonly LateCounts[],
): readonly Bucket[] {
  const widthMs = RINGS[history].granularitySeconds * 1_000;
  const [first] = buckets;
  if (first === undefined) return buckets;
  const sums: Record<(typeof COLUMNS)['a' | 'o'][number], number>[] = buckets.map(bucket => ({ ...bucket }));
  for (const each of late) {
    for (const [minute, counts] of missingCounts(each)) {
      const sum = sums[Math.floor((minute * 60_000 - first.startMs) / widthMs)];
      if (sum === undefined) continue;
      for (const [i, column] of COLUMNS[each.kind].entries()) sum[column] += counts[i] ?? 0;
    }
  }
  return sums as unknown as readonly Bucket[];
}
