import { z } from 'zod';
import { type Bucket, HISTORIES, type History, RINGS } from '../../../core/events/series.ts';
import { COUNTED, type CountedReason } from '../../../core/routing/reasons.ts';
import type { TrafficReader } from '../../../plane/traffic-reader.ts';
import { publicIdField } from '../../contract/fields.ts';
import { defineRoute } from '../../contract/route.ts';
import { fromRedis } from '../../objects/redis-failures.ts';
import { chooseStream, StreamChoice, StreamName, streamName } from '../streams/stream-choice.ts';

const HistoryChoice = z
  .enum(HISTORIES)
  .optional()
  .meta({ description: 'Time range to report on: the last hour, day, or week. Defaults to 24h.', example: '24h' });

const time = (description: string) =>
  z
    .string()
    .meta({ format: 'date-time', description: `${description} (RFC 3339, UTC).`, example: '2026-01-31T12:00:00.000Z' });

const isoOf = (ms: number) => new Date(ms).toISOString();

const count = (description: string, example: number) => z.int().min(0).meta({ description, example });

const SeriesBucket = z
  .object({
    timestamp: time('Start time of the bucket'),
    eventsIn: count(
      'The number of events accepted by ingress, not counting ids that were repeated within 24 hours.',
      120,
    ),
    deliveries: count(
      'The number of first deliveries that succeeded, counted per event and integration. This includes 2xx responses from endpoints as well as pulled events that have been acknowledged.',
      240,
    ),
    failures: count(
      'The number of first delivery attempts that failed, including final attempts. Add this to the number of HTTP deliveries for the total number of attempts.',
      3,
    ),
    notRouted: count('The number of events that were not routed to any integration and are not waiting for one.', 1),
    bytes: count('Total body size of all accepted events, in bytes.', 98_304),
    tokens: count(
      'The number of tokens paid by the producer for distribution, counted at the time an event is routed to an integration.',
      240,
    ),
  })
  .meta({ id: 'MetricsBucket' });

const MetricsSeries = z
  .object({
    producerTenantPublicId: publicIdField('Workspace'),
    history: z.enum(HISTORIES).meta({ description: 'Time range that was requested.' }),
    granularitySeconds: z
      .int()
      .meta({ description: 'The width of each bucket in seconds. Can be 60, 900, or 3600.', example: 900 }),
    start: time('Start time of the first bucket'),
    end: time('End time of the last bucket, i.e. the current one'),
    series: z.array(SeriesBucket).meta({
      description: 'Buckets in chronological order, including empty ones. There are 60, 96, or 168 in total.',
    }),
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
  scope: 'waas:read',
  operation: 'getMetricsSeries',
  tag: 'Metrics',
  summary: 'Retrieve traffic over time',
  description:
    "Returns traffic across all of the producer's streams and integrations, divided into buckets aligned to UTC. Events are counted when accepted, deliveries and failed attempts when they end, and tokens and `notRouted` at the time of routing. The counts are exact, but they can be a few seconds late, or more than that after a crash. They will always be added to the correct bucket. This does not include replays, test events, and sandbox events.",
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
  missing_group_key: 'No group key was provided with the event. Only counted once per event.',
  not_activated: 'The group key had not been activated for the integration.',
  skipped_to_now: 'The event predates the subscription, or was accepted during a pause whose backlog was skipped.',
  expired: "The event's retention period ended during a pause or delay of the subscription.",
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
    stream: StreamName.meta({ description: 'Stream that was requested.' }),
    history: z.enum(HISTORIES).meta({ description: 'Time range that was requested.' }),
    granularitySeconds: z.int().meta({ description: 'The width of each bucket, in seconds.', example: 3_600 }),
    start: time('Start time of the first bucket, rounded down from the beginning of the time range to a full hour'),
    end: time('End time of the last bucket, i.e. the current one'),
    reasons: z.array(ReasonCount).meta({ description: 'Totals for each reason across all buckets, even if 0.' }),
    series: z
      .array(
        z.object({
          timestamp: time('Start time of the bucket'),
          reasons: z
            .array(ReasonCount)
            .meta({ description: 'The counts for this hour, limited to reasons that occurred at least once.' }),
        }),
      )
      .meta({ description: 'Hours in chronological order, including empty ones. There are 2, 25, or 169 in total.' }),
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
    'Returns the number of times that events from a stream were not received by a subscribed integration, grouped by reason and UTC hour of routing. This means that an event missed by three integrations is counted three times. Events that are still waiting are not included. For the outcome of a single event, see `GET …/events/{eventId}` or, to predict one, `GET …/explain`.',
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
