import { z } from 'zod';
import { type Bucket, HISTORIES, type History, RINGS } from '../../../core/events/series.ts';
import { COUNTED, type CountedReason } from '../../../core/routing/reasons.ts';
import type { TrafficReader } from '../../../plane/traffic-reader.ts';
import { publicIdField, timeField } from '../../contract/fields.ts';
import { defineRoute } from '../../contract/route.ts';
import { fromRedis } from '../../objects/redis-failures.ts';
import { chooseStream, StreamChoice, StreamName, streamName } from '../streams/stream-choice.ts';

const HistoryChoice = z
  .enum(HISTORIES)
  .optional()
  .meta({ description: 'The time range to report on: the last hour, day, or week. Defaults to 24h.', example: '24h' });

const isoOf = (ms: number) => new Date(ms).toISOString();

const count = (description: string, example: number) => z.int().min(0).meta({ description, example });

const SeriesBucket = z
  .object({
    timestamp: timeField('The start time of the bucket'),
    eventsIn: count(
      'The number of events accepted by ingress, not counting ids that were repeated within 24 hours.',
      120,
    ),
    deliveries: count(
      'The number of successful first deliveries, counted for each event and integration. Includes 2xx responses from endpoints and pulled events that have been acknowledged.',
      240,
    ),
    failures: count(
      'The number of failed attempts of first deliveries, including final attempts. To calculate the total number of attempts, add the number of deliveries over HTTP.',
      3,
    ),
    notRouted: count(
      'The number of events that were not routed to any integration. Events that were waiting for a paused or delayed subscription are not included, even if they are canceled, are skipped, or expire before they are routed. GET …/metrics/not-routed includes skipped and expired events.',
      1,
    ),
    bytes: count('The total body size of all accepted events, in bytes.', 98_304),
    tokens: count(
      'The number of tokens paid by the producer for distribution. Tokens are counted when an event is routed to an integration.',
      240,
    ),
  })
  .meta({ id: 'MetricsBucket' });

const MetricsSeries = z
  .object({
    producerTenantPublicId: publicIdField('Workspace'),
    history: z.enum(HISTORIES).meta({ description: 'The requested time range.' }),
    granularitySeconds: z
      .int()
      .meta({ description: 'The width of each bucket in seconds. Can be 60, 900, or 3600.', example: 900 }),
    start: timeField('The start time of the first bucket'),
    end: timeField('The end time of the last bucket, which is the current bucket'),
    series: z.array(SeriesBucket).meta({
      description:
        'A list of all buckets in chronological order. The list also contains empty buckets. There are 60, 96, or 168 buckets in total.',
    }),
  })
  .meta({ id: 'MetricsSeries' });

/** Converts a series to the response format. */
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
  scope: 'waas:read',
  operation: 'getMetricsSeries',
  tag: 'Metrics',
  summary: 'Retrieve traffic over time',
  description:
    'Returns the traffic for all streams and integrations of the producer, divided into buckets aligned to UTC. An event is counted when it is accepted. A delivery or a failed attempt is counted when it ends. `tokens` and `notRouted` are counted when the event is routed. The counts are exact, but they may be delayed by up to 30 s, or longer after a crash. Delayed counts are always added to the correct bucket. Replays, test events, and sandbox events are not included.',
  query: z.strictObject({ history: HistoryChoice }),
  cost: 5,
  answers: { 200: { description: 'The requested time series.', schema: MetricsSeries } },
  async handle(facade, { tenant, query }) {
    const { history = '24h' } = query;
    const series = await fromRedis(facade.traffic.readSeries(tenant.publicId, history, facade.nowMs()));
    return { status: 200, body: metricsSeries(tenant.publicId, history, series) };
  },
});

const ABOUT: Record<CountedReason, string> = {
  missing_group_key: 'The event did not have a group key. This reason is only counted once per event.',
  not_activated: 'The group key was not activated for the integration.',
  skipped_to_now: 'The event was accepted during a pause after which events were skipped.',
  expired: 'The retention period of the event ended while the subscription was paused or delayed.',
};

const ReasonCount = z
  .object({
    reason: z.enum(COUNTED).meta({
      description: COUNTED.map(reason => `${reason}: ${ABOUT[reason]}`).join(' '),
      example: 'not_activated',
    }),
    count: count('The number of occurrences.', 1),
  })
  .meta({ id: 'NotRoutedCount' });

const NotRoutedSeries = z
  .object({
    producerTenantPublicId: publicIdField('Workspace'),
    stream: StreamName.meta({ description: 'The requested stream.' }),
    history: z.enum(HISTORIES).meta({ description: 'The requested time range.' }),
    granularitySeconds: z.int().meta({ description: 'The width of each bucket, in seconds.', example: 3_600 }),
    start: timeField(
      'The start time of the first bucket, rounded down from the beginning of the time range to a full hour',
    ),
    end: timeField('The end time of the last bucket, which is the current bucket'),
    reasons: z.array(ReasonCount).meta({ description: 'The totals for each reason across all buckets, including 0.' }),
    series: z
      .array(
        z.object({
          timestamp: timeField('The start time of the bucket'),
          reasons: z
            .array(ReasonCount)
            .meta({ description: 'The counts for this hour, limited to reasons that occurred at least once.' }),
        }),
      )
      .meta({
        description:
          'A list of all hours in chronological order. The list also contains hours without any counts. There are 2, 25, or 169 hours in total.',
      }),
  })
  .meta({ id: 'NotRoutedSeries' });

/** Converts counts to the response format. */
export function notRoutedSeries(
  producerTenantPublicId: string,
  stream: z.output<typeof StreamName>,
  history: History,
  hours: Awaited<ReturnType<TrafficReader['readReasons']>>,
): z.output<typeof NotRoutedSeries> {
  const granularitySeconds = 3_600;
  const startMs = hours[0]?.startMs ?? 0;
  const sum = (reason: CountedReason) => hours.reduce((total, { reasons }) => total + reasons[reason], 0);
  return {
    producerTenantPublicId,
    stream,
    history,
    granularitySeconds,
    start: isoOf(startMs),
    end: isoOf(startMs + hours.length * granularitySeconds * 1_000),
    reasons: COUNTED.map(reason => ({ reason, count: sum(reason) })),
    series: hours.map(({ startMs: hourMs, reasons }) => ({
      timestamp: isoOf(hourMs),
      reasons: COUNTED.filter(reason => reasons[reason] > 0).map(reason => ({ reason, count: reasons[reason] })),
    })),
  };
}

const getNotRouted = defineRoute({
  method: 'GET',
  path: '/waas/producer/{tenant}/metrics/not-routed',
  access: 'producer',
  scope: 'waas:read',
  operation: 'getNotRouted',
  tag: 'Metrics',
  summary: 'Count events that were not routed, by reason',
  description:
    'Returns how often subscribed integrations did not receive an event of a stream, by reason and hour (UTC). An event that three integrations did not receive counts three times. Waiting events are not included. For the outcome of a single event, use `GET …/events/{eventId}`. To predict it, use `GET …/explain`.',
  query: z.strictObject({ stream: StreamChoice, history: HistoryChoice }),
  cost: 5,
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
