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
  .meta({ description: 'The time range, which is the last hour, day or week. Defaults to 24h.', example: '24h' });

const time = (description: string) =>
  z
    .string()
    .meta({ format: 'date-time', description: `${description} (RFC 3339, UTC).`, example: '2026-01-31T12:00:00.000Z' });

const isoOf = (ms: number) => new Date(ms).toISOString();

const count = (description: string, example: number) => z.int().min(0).meta({ description, example });

const SeriesBucket = z
  .object({
    timestamp: time('The start of the bucket'),
    eventsIn: count(
      'The number of events that ingress accepted. An id that is repeated within 24 hours is counted once.',
      120,
    ),
    deliveries: count(
      'The number of successful first deliveries for each event and integration. A delivery is successful if the endpoint responds with 2xx or if the partner acknowledges a pulled event.',
      240,
    ),
    failures: count(
      'The number of failed attempts of first deliveries, including the last attempt. The sum of HTTP deliveries and failures is the total number of attempts.',
      3,
    ),
    notRouted: count('The number of events that were not routed to any integration and are not waiting for one.', 1),
    bytes: count('The total size of the bodies of accepted events in bytes.', 98_304),
    tokens: count(
      'The number of tokens that the producer paid for distribution. Tokens are counted when an event is routed to an integration.',
      240,
    ),
  })
  .meta({ id: 'MetricsBucket' });

const MetricsSeries = z
  .object({
    producerTenantPublicId: publicIdField('Workspace'),
    history: z.enum(HISTORIES).meta({ description: 'The time range of the request.' }),
    granularitySeconds: z
      .int()
      .meta({ description: 'The width of a bucket in seconds, which is 60, 900 or 3600.', example: 900 }),
    start: time('The start of the first bucket'),
    end: time('The end of the last bucket, which is the current bucket'),
    series: z
      .array(SeriesBucket)
      .meta({ description: 'All 60, 96 or 168 buckets, including empty buckets, with the oldest bucket first.' }),
  })
  .meta({ id: 'MetricsSeries' });

/** Converts a series to the answer format. */
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
    'Returns the traffic of all streams and integrations of the producer in buckets that are aligned to UTC. An event is counted when it is accepted. Deliveries and failed attempts are counted when they end, and tokens and `notRouted` are counted when the event is routed. The counts are exact, but they can be delayed by a few seconds, or longer after a crash. A delayed count is always added to the correct bucket. Replays, test events and sandbox events are not included.',
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
  missing_group_key: 'The event does not have a group key. This reason is counted once per event.',
  not_activated: 'The group key was not active for the integration.',
  not_subscribed: 'The subscription was deleted or created again before the event was routed.',
  integration_pending: 'The partner had not accepted the invitation.',
  integration_closed: 'The integration was declined or revoked, or it had expired.',
  skipped_to_now: 'The event was accepted before the subscription existed, or during a pause with a skipped backlog.',
  expired: 'The retention period of the event ended while the subscription was paused or delayed.',
};

const ReasonCount = z
  .object({
    reason: z.enum(REASONS).meta({
      description: REASONS.map(reason => `${reason}: ${ABOUT[reason]}`).join(' '),
      example: 'not_activated',
    }),
    count: count('The number of occurrences.', 1),
  })
  .meta({ id: 'NotRoutedCount' });

const NotRoutedSeries = z
  .object({
    producerTenantPublicId: publicIdField('Workspace'),
    stream: StreamName.meta({ description: 'The stream of the request.' }),
    history: z.enum(HISTORIES).meta({ description: 'The time range of the request.' }),
    granularitySeconds: z.int().meta({ description: 'The width of a bucket in seconds.', example: 3_600 }),
    start: time('The start of the first bucket, which is the full hour in which the time range begins'),
    end: time('The end of the last bucket, which is the current bucket'),
    reasons: z
      .array(ReasonCount)
      .meta({ description: 'The totals of all buckets for each reason, including reasons with a count of 0.' }),
    series: z
      .array(
        z.object({
          timestamp: time('The start of the bucket'),
          reasons: z
            .array(ReasonCount)
            .meta({ description: 'The counts of this hour. Only reasons with a count above 0 are included.' }),
        }),
      )
      .meta({ description: 'All 2, 25 or 169 hours, including hours without counts, with the oldest hour first.' }),
  })
  .meta({ id: 'NotRoutedSeries' });

/** Converts counts to the answer format. */
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
    'Returns how often a subscribed integration did not receive an event of a stream, grouped by the reason and the UTC hour of routing. If three integrations did not receive an event, it is counted three times. Waiting events are not counted. To get the result for a single event, use `GET …/events/{eventId}`. To get a prediction for an event, use `GET …/explain`.',
  query: z.strictObject({ stream: StreamChoice, history: HistoryChoice }),
  answers: { 200: { description: 'The counts for each reason.', schema: NotRoutedSeries } },
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
