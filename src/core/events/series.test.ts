import { describe, expect, test } from 'vitest';
import { HISTORIES, hoursOf, RINGS, seriesOf, slotsOf, windowOf } from './series.ts';

const at = (time: string) => Date.parse(time);
const iso = (ms: number) => new Date(ms).toISOString();

test.each([
  ['1h', '2026-03-01T00:00:59.999Z', '2026-02-28T23:01:00.000Z', '2026-03-01T00:01:00.000Z', 60, 60],
  ['1h', '2026-03-01T00:01:00.000Z', '2026-02-28T23:02:00.000Z', '2026-03-01T00:02:00.000Z', 60, 60],
  ['24h', '2026-03-01T00:14:59.999Z', '2026-02-28T00:15:00.000Z', '2026-03-01T00:15:00.000Z', 96, 900],
  ['7d', '2026-03-01T00:00:00.000Z', '2026-02-22T01:00:00.000Z', '2026-03-01T01:00:00.000Z', 168, 3_600],
] as const)(
  '%s at %s includes complete UTC buckets up to the current bucket',
  (history, now, start, end, buckets, seconds) => {
    const ring = RINGS[history];
    const window = windowOf(ring, at(now));
    expect([iso(window.startMs), iso(window.endMs)]).toEqual([start, end]);
    expect(slotsOf(ring, window)).toHaveLength(buckets);
    expect((window.endMs - window.startMs) / 1_000).toBe(buckets * seconds);
  },
);

describe.each(HISTORIES)('%s', history => {
  const ring = RINGS[history];
  const window = windowOf(ring, at('2026-03-01T12:34:56.789Z'));
  const first = window.startMs / (ring.granularitySeconds * 1_000);

  test('the buckets of a window have separate slots', () => {
    expect(new Set(slotsOf(ring, window)).size).toBe(ring.buckets);
    expect(ring.slots).toBeGreaterThan(ring.buckets);
  });

  test('ignores values of another round, and uses zero for gaps', () => {
    const texts: (string | null)[] = slotsOf(ring, window).map(() => null);
    texts[0] = `${first} 1 2 3 4 5 6`;
    texts[1] = `${first + 1 - ring.slots} 9 9 9 9 9 9`;
    const series = seriesOf(ring, window, texts);
    expect(series).toHaveLength(ring.buckets);
    expect(series[0]).toEqual({
      startMs: window.startMs,
      eventsIn: 1,
      deliveries: 2,
      failures: 3,
      notRouted: 4,
      bytes: 5,
      tokens: 6,
    });
    expect(series.slice(1).every(({ eventsIn, bytes }) => eventsIn + bytes === 0)).toBe(true);
    expect(series.at(-1)?.startMs).toBe(window.endMs - ring.granularitySeconds * 1_000);
  });

  test('returns the hours that are included', () => {
    const hours = hoursOf(history, at('2026-03-01T12:34:56.789Z'));
    expect(hours).toHaveLength({ '1h': 2, '24h': 25, '7d': 169 }[history]);
    expect(iso((hours.at(-1) as number) * 3_600_000)).toBe('2026-03-01T12:00:00.000Z');
  });
});
