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
  .meta({ description: 'How far back: the last hour, day or week. Default 24h.', example: '24h' });

const time = (description: string) =>
  z
    .string()
    .meta({ format: 'date-time', description: `${description} (RFC 3339, UTC).`, example: '2026-01-31T12:00:00.000Z' });

const isoOf = (ms: number) => new Date(ms).toISOString();

const count = (description: string, example: number) => z.int().min(0).meta({ description, example });

const SeriesBucket = z
  .object({
    timestamp: time('Beginning of the bucket'),
    eventsIn: count('Events that ingress accepted; a repeated id within 24 hours counts once.', 120),
    deliveries: count(
      'First deliveries that succeeded, one for each event and integration: answered with 2xx, or acknowledged by an integration that pulls.',
      240,
    ),
    failures: count(
      'Attempts of first deliveries that failed, whether they are tried again or were the last one: deliveries by HTTP and failures together are the attempts made.',
      3,
    ),
    notRouted: count('Events that went to no integration at all when they were routed, and wait for none.', 1),
    bytes: count('Bytes of the bodies of the events that were accepted.', 98_304),
    tokens: count('Tokens that distribution cost the producer, counted when an event went to an integration.', 240),
  })
  .meta({ id: 'MetricsBucket' });

const MetricsSeries = z
  .object({
    producerTenantPublicId: publicIdField('Workspace'),
    history: z.enum(HISTORIES).meta({ description: 'As it was asked for.' }),
    granularitySeconds: z.int().meta({ description: 'Width of a bucket, seconds: 60, 900 or 3600.', example: 900 }),
    start: time('Beginning of the first bucket'),
    end: time('End of the last bucket, which is the one of now'),
    series: z
      .array(SeriesBucket)
      .meta({ description: 'Every bucket, oldest first, with zeros where nothing was counted: 60, 96 or 168.' }),
  })
  .meta({ id: 'MetricsSeries' });

/** The answer, of what was read. */
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
  summary: 'Read what was distributed, over time',
  description:
    'Traffic of all streams and integrations of the producer together, in buckets that are aligned in UTC. Each count stands where it happened: an event where it was accepted, a delivery or a failed attempt where it ended, tokens and `notRouted` where the event was routed. Counts are exact; they may appear some seconds late, later after a crash, and always in their own bucket. Replays, test events and the sandbox are left out.',
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
  missing_group_key: 'Events without a group key, which go to nobody; of this reason, events are counted.',
  not_activated: 'Its group key was not activated for the integration.',
  not_subscribed: 'The subscription ended, or was made anew, before the event was routed.',
  integration_pending: 'The integration had not accepted its invitation.',
  integration_closed: 'The integration was declined, expired or revoked.',
  skipped_to_now: 'It came before the subscription, or during a pause whose backlog was skipped.',
  expired: 'Retention removed it while the subscription was held or behind.',
};

const ReasonCount = z
  .object({
    reason: z.enum(REASONS).meta({
      description: REASONS.map(reason => `${reason}: ${ABOUT[reason]}`).join(' '),
      example: 'not_activated',
    }),
    count: count('How often.', 1),
  })
  .meta({ id: 'NotRoutedCount' });

const NotRoutedSeries = z
  .object({
    producerTenantPublicId: publicIdField('Workspace'),
    stream: StreamName.meta({ description: 'The stream that was asked about.' }),
    history: z.enum(HISTORIES).meta({ description: 'As it was asked for.' }),
    granularitySeconds: z.int().meta({ description: 'Width of a bucket, seconds.', example: 3_600 }),
    start: time('Beginning of the first bucket: the full hour in which the history begins'),
    end: time('End of the last bucket, which is the one of now'),
    reasons: z.array(ReasonCount).meta({ description: 'Of all buckets together: every reason, also where it is 0.' }),
    series: z
      .array(
        z.object({
          timestamp: time('Beginning of the bucket'),
          reasons: z.array(ReasonCount).meta({ description: 'Of this hour: the reasons that were counted in it.' }),
        }),
      )
      .meta({ description: 'Every hour, oldest first, also where nothing was counted: 2, 25 or 169.' }),
  })
  .meta({ id: 'NotRoutedSeries' });

/** The answer, of what was read. */
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
  summary: 'Count why events of a stream did not go to integrations',
  description:
    'For one stream, how often an integration that subscribes to it did not get an event, by reason and UTC hour, counted when the event was routed. One event that three integrations did not get counts three times. What is only held back is not counted: it goes there yet. What became of a single event: `GET …/events/{eventId}`; what would happen to one: `GET …/explain`.',
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
