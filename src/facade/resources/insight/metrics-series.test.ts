import { expect, test } from 'vitest';
import { HISTORIES, RINGS, seriesOf, slotsOf, windowOf } from '../../../core/events/series.ts';
import { ROUTES } from '../../routes.ts';
import { metricsSeries, notRoutedSeries } from './metrics-series.ts';

const NOW_MS = Date.parse('2026-03-01T12:34:56.789Z');
const TENANT = 'ten_0123456789abcdefghjk';
const routeOf = (operation: string) => ROUTES.find(route => route.operation === operation);
const answers = (operation: string, body: unknown) => routeOf(operation)?.answers[200]?.schema?.safeParse(body).success;

test.each(HISTORIES)('a series of %s contains every bucket, in UTC', history => {
  const ring = RINGS[history];
  const window = windowOf(ring, NOW_MS);
  const texts = slotsOf(ring, window).map(() => null);
  const body = metricsSeries(TENANT, history, seriesOf(ring, window, texts));
  expect(answers('getMetricsSeries', body)).toBe(true);
  expect(body).toMatchObject({ producerTenantPublicId: TENANT, history, granularitySeconds: ring.granularitySeconds });
  expect(body.series).toHaveLength(ring.buckets);
  expect([body.start, body.end]).toEqual([body.series[0]?.timestamp, new Date(window.endMs).toISOString()]);
  const gaps = body.series.map(
    ({ timestamp }, i) => Date.parse(timestamp) - window.startMs - i * ring.granularitySeconds * 1_000,
  );
  expect(new Set(gaps)).toEqual(new Set([0]));
  expect(body.series.at(-1)).toEqual({
    timestamp: new Date(window.endMs - ring.granularitySeconds * 1_000).toISOString(),
    eventsIn: 0,
    deliveries: 0,
    failures: 0,
    notRouted: 0,
    bytes: 0,
    tokens: 0,
  });
});

test.each([
  ['1h', true],
  ['24h', true],
  ['7d', true],
  [undefined, true],
  ['', false],
  ['1H', false],
  ['2h', false],
  ['168h', false],
  ['1h,24h', false],
  [['1h', '24h'], false],
])('history %j is accepted: %s', (history, taken) => {
  for (const [operation, more] of [
    ['getMetricsSeries', {}],
    ['getNotRouted', { stream: 'orders' }],
  ] as const) {
    const query = history === undefined ? more : { ...more, history };
    expect(routeOf(operation)?.query?.safeParse(query).success).toBe(taken);
  }
});

test('reasons are added up by their name', () => {
  const none = { missing_group_key: 0, not_activated: 0, skipped_to_now: 0, expired: 0 };
  const hours = [
    { startMs: Date.parse('2026-03-01T11:00:00Z'), reasons: { ...none, expired: 2 } },
    { startMs: Date.parse('2026-03-01T12:00:00Z'), reasons: { ...none, expired: 3, not_activated: 1 } },
  ];
  const body = notRoutedSeries(TENANT, { publicId: 'cat_0123456789abcdefghjk', key: 'orders' }, '1h', hours);
  expect(answers('getNotRouted', body)).toBe(true);
  expect(body.reasons).toEqual([
    { reason: 'missing_group_key', count: 0 },
    { reason: 'not_activated', count: 1 },
    { reason: 'skipped_to_now', count: 0 },
    { reason: 'expired', count: 5 },
  ]);
  expect([body.start, body.end]).toEqual(['2026-03-01T11:00:00.000Z', '2026-03-01T13:00:00.000Z']);
  expect(body.series).toEqual([
    { timestamp: '2026-03-01T11:00:00.000Z', reasons: [{ reason: 'expired', count: 2 }] },
    {
      timestamp: '2026-03-01T12:00:00.000Z',
      reasons: [
        { reason: 'not_activated', count: 1 },
        { reason: 'expired', count: 3 },
      ],
    },
  ]);
});
