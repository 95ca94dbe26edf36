import { type PanelRow, quantiles, rate } from './panel.ts';

/** Rows for the control plane, Redis and processes. */
export const CONTROL_ROWS: readonly PanelRow[] = [
  {
    title: 'Controller',
    panels: [
      {
        title: 'Reconciliations',
        description: 'Grouped by result.',
        unit: 'ops',
        queries: { [rate('controller_runtime_reconcile_total', 'result')]: '{{result}}' },
      },
      {
        title: 'Waiting keys',
        description: 'Grouped by controller.',
        unit: 'short',
        queries: { 'sum by (name) (workqueue_depth)': '{{name}}' },
      },
      {
        title: 'Objects',
        description: 'Objects in the caches, grouped by kind.',
        unit: 'short',
        queries: { 'max by (kind) (sluice_controller_objects)': '{{kind}}' },
      },
      {
        title: 'Needs attention',
        description:
          'Accounts without tokens, backlogs close to the end of their retention period, and repairs and removals in Redis.',
        unit: 'short',
        queries: {
          'max(sluice_controller_accounts_short)': 'accounts without tokens',
          'max(sluice_controller_backlogs_at_risk)': 'backlogs at risk',
          'sum(increase(sluice_controller_drift_repaired_total[$__rate_interval]))': 'repaired',
          'sum(increase(sluice_controller_swept_total[$__rate_interval]))': 'swept',
        },
      },
      {
        title: 'Subscriptions that are not live',
        description: 'Grouped by the reason of the condition Live.',
        unit: 'short',
        queries: { 'max by (reason) (sluice_controller_subscriptions_not_live)': '{{reason}}' },
      },
      {
        title: 'Calls to the API server',
        description: 'Grouped by status code.',
        unit: 'reqps',
        queries: { [rate('rest_client_requests_total', 'code')]: '{{code}}' },
      },
      {
        title: 'Invitations',
        description: 'Emails, grouped by result.',
        unit: 'ops',
        queries: { [rate('sluice_controller_invitation_mails_total', 'result')]: '{{result}}' },
      },
    ],
  },
  {
    title: 'Facade',
    panels: [
      {
        title: 'Calls',
        description: 'Grouped by status, and by the limit that rejected them.',
        unit: 'reqps',
        queries: {
          [rate('sluice_facade_request_duration_seconds_count', 'status')]: '{{status}}',
          [rate('sluice_facade_limited_total', 'limit')]: 'limit: {{limit}}',
        },
      },
      {
        title: 'Call duration',
        description: 'Calls that make changes wait until the change is in force.',
        unit: 's',
        queries: quantiles('sluice_facade_request_duration_seconds'),
      },
      {
        title: 'Refused access tokens',
        description: 'Grouped by reason.',
        unit: 'reqps',
        queries: { [rate('sluice_facade_refused_tokens_total', 'reason')]: '{{reason}}' },
      },
      {
        title: 'Inbox operations',
        description: "Events, grouped by the partner's operation.",
        unit: 'ops',
        queries: { [rate('sluice_facade_inbox_events_total', 'operation')]: '{{operation}}' },
      },
    ],
  },
  {
    title: 'Redis and processes',
    panels: [
      {
        title: 'Commands to Redis',
        description: 'Each script is counted as one command.',
        unit: 'ops',
        queries: {
          [rate('sluice_redis_commands_total', 'instance')]: '{{instance}}',
          [rate('sluice_redis_command_errors_total', 'reason')]: 'failed: {{reason}}',
        },
      },
      {
        title: 'Command duration',
        description: 'Under load, only some of the commands are measured.',
        unit: 's',
        queries: quantiles('sluice_redis_command_duration_seconds'),
      },
      {
        title: 'Process memory',
        description: 'Resident.',
        unit: 'bytes',
        queries: { 'process_resident_memory_bytes and on (instance, job) sluice_build_info': '{{instance}}' },
      },
      {
        title: 'Process CPU',
        description: 'Cores.',
        unit: 'short',
        queries: {
          'rate(process_cpu_seconds_total[$__rate_interval]) and on (instance, job) sluice_build_info': '{{instance}}',
        },
      },
    ],
  },
];
