import { z } from 'zod';
import { type Bucket, HISTORIES, type History, RINGS } from '../../../core/events/series.ts';
import { NOT_ROUTED, type NotRoutedReason } from '../../../core/routing/reasons.ts';
import type { TrafficReader } from '../../../redis/traffic-reader.ts';
import { publicIdField } from '../../contract/fields.ts';
import { defineRoute } from '../../contract/route.ts';
import { fromRedis } from '../../objects/redis-failures.ts';
import { chooseStream, StreamChoice, StreamName, streamName } from '../streams/stream-choice.ts';

const HistoryChoice = z
  .enum(HISTORIES)
  .optional()
  .meta({ description: 'Time range: the last hour, day or week. Default 24h.', example: '24h' });

const time = (description: string) =>
  z
    .string()
    .meta({ format: 'date-time', description: `${description} (RFC 3339, UTC).`, example: '2026-01-31T12:00:00.000Z' });

const isoOf = (ms: number) => new Date(ms).toISOString();

const count = (description: string, example: number) => z.int().min(0).meta({ description, example });

const SeriesBucket = z
  .object({
    timestamp: time('Start of the bucket'),
    eventsIn: count('Events that ingress accepted. An id repeated within 24 hours counts once.', 120),
    deliveries: count(
      'Successful first deliveries, one per event and integration: answered with 2xx, or acknowledged after a pull.',
      240,
    ),
    failures: count(
      'Failed attempts of first deliveries, including the last ones. HTTP deliveries plus failures are all attempts.',
      3,
    ),
    notRouted: count('Events that the router sent to no integration and that wait for none.', 1),
    bytes: count('Bytes of the bodies of accepted events.', 98_304),
    tokens: count(
      'Tokens that the producer paid for distribution, counted when an event is routed to an integration.',
      240,
    ),
  })
  .meta({ id: 'MetricsBucket' });

const MetricsSeries = z
  .object({
    producerTenantPublicId: publicIdField('Workspace'),
    history: z.enum(HISTORIES).meta({ description: 'Time range of the request.' }),
    granularitySeconds: z.int().meta({ description: 'Width of a bucket in seconds: 60, 900 or 3600.', example: 900 }),
    start: time('Start of the first bucket'),
    end: time('End of the last bucket, which is the current one'),
    series: z
      .array(SeriesBucket)
      .meta({ description: 'All 60, 96 or 168 buckets, oldest first, also those that are 0.' }),
  })
  .meta({ id: 'MetricsSeries' });

/** Returns the answer for a series that was read. */
export function metricsSeries(
  producerTenantPublicId: string,
  history: History,
  series: readonly Bucket[],
): z.output<typeof MetricsSeries> {
  const { granularitySeconds } = RINGS[history];
  const startMs = series[0]?.startMs ?? 0;
  return {
    producerTenantPublicId,
    history,
    granularitySeconds,
    start: isoOf(startMs),
    end: isoOf(startMs + series.length * granularitySeconds * 1_000),
    series: series.map(({ startMs: bucketMs, ...traffic }) => ({ timestamp: isoOf(bucketMs), ...traffic })),
  };
}

const getMetricsSeries = defineRoute({
  method: 'GET',
  path: '/waas/producer/{tenant}/metrics/series',
  access: 'producer',
  operation: 'getMetricsSeries',
  tag: 'Metrics',
  summary: 'Read traffic over time',
  description:
    "Traffic of all the producer's streams and integrations, in buckets aligned to UTC. An event counts when it is accepted, a delivery or failed attempt when it ends, tokens and `notRouted` when the event is routed. Counts are exact. They may appear some seconds late, longer after a crash, but always in their own bucket. Replays, test events and the sandbox do not count.",
  query: z.strictObject({ history: HistoryChoice }),
  answers: { 200: { description: 'The series.', schema: MetricsSeries } },
  async handle(facade, { tenant, query }) {
    const { history = '24h' } = query;
    const series = await fromRedis(facade.traffic.readSeries(tenant.publicId, history, facade.nowMs()));
    return { status: 200, body: metricsSeries(tenant.publicId, history, series) };
  },
});

const REASONS = Object.keys(NOT_ROUTED) as NotRoutedReason[];

const ABOUT: Record<NotRoutedReason, string> = {
  missing_group_key: 'The event has no group key. This reason counts once per event.',
  not_activated: 'The group key was not active for the integration.',
  not_subscribed: 'The subscription was deleted or re-created before the event was routed.',
  integration_pending: 'The integration had not accepted its invitation.',
  integration_closed: 'The integration was declined, expired or revoked.',
  skipped_to_now: 'The event came before the subscription, or during a pause whose backlog was skipped.',
  expired: 'Retention removed the event while the subscription was held or behind.',
};

const ReasonCount = z
  .object({
    reason: z.enum(REASONS).meta({
      description: REASONS.map(reason => `${reason}: ${ABOUT[reason]}`).join(' '),
      example: 'not_activated',
    }),
    count: count('Number of occurrences.', 1),
  })
  .meta({ id: 'NotRoutedCount' });

const NotRoutedSeries = z
  .object({
    producerTenantPublicId: publicIdField('Workspace'),
    stream: StreamName.meta({ description: 'The stream of the request.' }),
    history: z.enum(HISTORIES).meta({ description: 'Time range of the request.' }),
    granularitySeconds: z.int().meta({ description: 'Width of a bucket in seconds.', example: 3_600 }),
    start: time('Start of the first bucket: the full hour in which the time range begins'),
    end: time('End of the last bucket, which is the current one'),
    reasons: z.array(ReasonCount).meta({ description: 'Totals of all buckets: every reason, also those that are 0.' }),
    series: z
      .array(
        z.object({
          timestamp: time('Start of the bucket'),
          reasons: z.array(ReasonCount).meta({ description: 'Counts of this hour: only reasons above 0.' }),
        }),
      )
      .meta({ description: 'All 2, 25 or 169 hours, oldest first, also those without counts.' }),
  })
  .meta({ id: 'NotRoutedSeries' });

/** Returns the answer for counts that were read. */
export function notRoutedSeries(
  producerTenantPublicId: string,
  stream: z.output<typeof StreamName>,
  history: History,
  hours: Awaited<ReturnType<TrafficReader['readReasons']>>,
): z.output<typeof NotRoutedSeries> {
  const granularitySeconds = 3_600;
  const startMs = hours[0]?.startMs ?? 0;
  const sum = (reason: NotRoutedReason) => hours.reduce((total, { reasons }) => total + reasons[reason], 0);
  return {
    producerTenantPublicId,
    stream,
    history,
    granularitySeconds,
    start: isoOf(startMs),
    end: isoOf(startMs + hours.length * granularitySeconds * 1_000),
    reasons: REASONS.map(reason => ({ reason, count: sum(reason) })),
    series: hours.map(({ startMs: hourMs, reasons }) => ({
      timestamp: isoOf(hourMs),
      reasons: REASONS.filter(reason => reasons[reason] > 0).map(reason => ({ reason, count: reasons[reason] })),
    })),
  };
}

const getNotRouted = defineRoute({
  method: 'GET',
  path: '/waas/producer/{tenant}/metrics/not-routed',
  access: 'producer',
  operation: 'getNotRouted',
  tag: 'Metrics',
  summary: 'Count events that were not routed, by reason',
  description:
    'For one stream, counts how often a subscribed integration did not get an event, by reason and UTC hour of routing. An event that three integrations did not get counts three times. Waiting events do not count. For a single event use `GET …/events/{eventId}`; to predict one use `GET …/explain`.',
  query: z.strictObject({ stream: StreamChoice, history: HistoryChoice }),
  answers: { 200: { description: 'Counts by reason.', schema: NotRoutedSeries } },
  problems: ['unknown_resource'],
  async handle(facade, { tenant, query }) {
    const { history = '24h' } = query;
    const stream = await chooseStream(facade, tenant.name, query.stream);
    const reading = facade.traffic.readReasons(tenant.publicId, stream.metadata.name, history, facade.nowMs());
    const body = notRoutedSeries(tenant.publicId, streamName(stream), history, await fromRedis(reading));
    return { status: 200, body };
  },
});

export const METRICS_ROUTES = [getMetricsSeries, getNotRouted];
