import { type PanelRow, quantiles, rate } from './panel.ts';

/** Rows for the path of events. */
export const EVENT_ROWS: readonly PanelRow[] = [
  {
    title: 'At a glance',
    panels: [
      {
        title: 'Ready replicas',
        description: 'Grouped by role.',
        unit: 'none',
        stat: true,
        queries: { 'sum by (role) (sluice_role_ready)': '{{role}}' },
      },
      {
        title: 'Open deliveries',
        description:
          'The total for all subscriptions, including those without an active endpoint. If there are more than 64 streams, this value is estimated.',
        unit: 'short',
        stat: true,
        queries: { 'max(sluice_dispatcher_open_deliveries)': 'open' },
      },
      {
        title: 'Overdue work',
        description: 'The time that the oldest due work has been waiting to be processed.',
        unit: 's',
        stat: true,
        queries: { 'max by (index) (sluice_work_overdue_seconds)': '{{index}}' },
      },
      {
        title: 'Redis memory',
        description: 'The used proportion of maxmemory on the master with the highest usage.',
        unit: 'percentunit',
        stat: true,
        queries: { 'max(sluice_redis_memory_used_ratio)': 'used' },
      },
    ],
  },
  {
    title: 'Events',
    panels: [
      {
        title: 'Accepted, routed, delivered',
        description: 'An accepted event can be routed and delivered to several partners.',
        unit: 'ops',
        queries: {
          [rate('sluice_ingress_events_total{result=~"accepted|missing_group_key"}')]: 'accepted',
          [`${rate('sluice_ingress_routed_total')} + ${rate('sluice_dispatcher_routed_total')}`]: 'routed',
          [rate('sluice_dispatcher_events_total{result="delivered"}')]: 'delivered',
          [rate('sluice_dispatcher_events_total{result="dead"}')]: 'dead',
        },
      },
      {
        title: 'Event age at delivery',
        description: 'The time since the event was accepted, including retries and pauses.',
        unit: 's',
        queries: quantiles('sluice_dispatcher_delivery_age_seconds'),
      },
      {
        title: 'Not routed',
        description: 'Events without a receiving subscription, and events that expired before they were routed.',
        unit: 'ops',
        queries: {
          [['ingress', 'dispatcher'].map(role => rate(`sluice_${role}_not_routed_total`, 'reason')).join(' or ')]:
            '{{reason}}',
        },
      },
      {
        title: 'Waiting work',
        description: 'Due work that is not being processed.',
        unit: 'short',
        queries: { 'max by (index) (sluice_work_due)': '{{index}}' },
      },
    ],
  },
  {
    title: 'Ingress',
    panels: [
      {
        title: 'Requests',
        description: 'Grouped by HTTP status code, and by the limit that rejected them.',
        unit: 'reqps',
        queries: {
          [rate('sluice_ingress_requests_total', 'code')]: '{{code}}',
          [rate('sluice_ingress_limited_total', 'limit')]: 'limit: {{limit}}',
        },
      },
      {
        title: 'Time to acceptance',
        description:
          'The time until the response has been written. At this point, an accepted event is stored on disk.',
        unit: 's',
        queries: quantiles('sluice_ingress_request_duration_seconds'),
      },
      {
        title: 'Events in memory',
        description: 'Events that have been received but not stored.',
        unit: 'bytes',
        queries: {
          'max(sluice_ingress_held_bytes)': 'held',
          'min(sluice_ingress_held_bytes_limit)': 'limit',
        },
      },
      {
        title: 'Events by result',
        description: 'Grouped by the response of the store.',
        unit: 'ops',
        queries: { [rate('sluice_ingress_events_total', 'result')]: '{{result}}' },
      },
    ],
  },
  {
    title: 'Parts',
    panels: [
      {
        title: 'Parts',
        description: 'The number of parts processed by each dispatcher, grouped by duty. Each part has one home.',
        unit: 'short',
        queries: { 'sum by (instance, duty) (sluice_dispatcher_parts)': '{{instance}} {{duty}}' },
      },
      {
        title: 'Parts held back',
        description: 'Parts whose events are currently stored without being routed, grouped by cause.',
        unit: 'short',
        queries: { 'sum by (cause) (sluice_dispatcher_parts_held)': '{{cause}}' },
      },
      {
        title: 'Time held back',
        description: 'The longest time that a part has been held back, grouped by cause.',
        unit: 's',
        queries: { 'max by (cause) (sluice_dispatcher_parts_held_seconds)': '{{cause}}' },
      },
      {
        title: 'Routed later',
        description: 'Deliveries created after storing the event because the part or the subscription was behind.',
        unit: 'ops',
        queries: { [rate('sluice_dispatcher_routed_total')]: 'routed later' },
      },
      {
        title: 'Exchanges',
        description: 'Calls that write results and claim events, grouped by result.',
        unit: 'ops',
        queries: { [rate('sluice_dispatcher_exchanges_total', 'result')]: '{{result}}' },
      },
      {
        title: 'Claims',
        description: 'Claimed events, grouped by process, with a maximum of 4,608, and of 2,048 for a single stream.',
        unit: 'short',
        queries: { sluice_dispatcher_claims: '{{instance}}' },
      },
      {
        title: 'Claims returned',
        description: 'Claims that were returned without an attempt, grouped by cause.',
        unit: 'ops',
        queries: { [rate('sluice_dispatcher_returned_claims_total', 'cause')]: '{{cause}}' },
      },
    ],
  },
  {
    title: 'Dispatcher',
    panels: [
      {
        title: 'Attempts',
        description: 'Grouped by outcome and reason.',
        unit: 'ops',
        queries: { [rate('sluice_dispatcher_attempts_total', 'outcome, reason')]: '{{outcome}} {{reason}}' },
      },
      {
        title: 'Attempt duration',
        description: 'The time between opening the connection and the end of the response.',
        unit: 's',
        queries: quantiles('sluice_dispatcher_attempt_duration_seconds'),
      },
      {
        title: 'Attempts in flight',
        description: 'Grouped by process, with a maximum of 4,608.',
        unit: 'short',
        queries: { sluice_dispatcher_attempts_in_flight: '{{instance}}' },
      },
      {
        title: 'Delivery results',
        description:
          'Failed events are retried. Expired deliveries were still waiting when the retention period ended.',
        unit: 'ops',
        queries: {
          [rate('sluice_dispatcher_events_total', 'result')]: '{{result}}',
          [rate('sluice_dispatcher_replayed_total')]: 'replayed',
          [rate('sluice_dispatcher_expired_total')]: 'expired while waiting',
          [rate('sluice_dispatcher_failures_total')]: 'failed turns',
        },
      },
    ],
  },
];
