import { type AlertGroup, p99, share } from './alert-rule.ts';

export const ingress: AlertGroup = {
  name: 'sluice-ingress',
  rules: [
    {
      name: 'SluiceIngressErrors',
      expr: `${share('sluice_ingress_requests_total{code=~"5.."}', 'sluice_ingress_requests_total', '5m')} > 0.01`,
      for: '5m',
      severity: 'critical',
      summary: 'Ingress answers more than 1 % of the events with 5xx.',
      impact: 'Producers must retry. An event that is not retried is lost.',
      steps: [
        'Check the alerts of Redis first: ingress answers 503 while it cannot store.',
        'If `sluice_ingress_held_bytes` is near its limit, requests come faster than they are stored: add replicas.',
        'Look for `store operation failed` and `request failed` in the log of ingress.',
      ],
    },
    {
      name: 'SluiceIngressSlow',
      expr: `${p99('sluice_ingress_request_duration_seconds')} > 1`,
      for: '10m',
      severity: 'warning',
      summary: 'Ingress takes more than a second to accept 1 % of the events.',
      impact: 'Producers wait, or time out and retry.',
      steps: [
        'See SluiceRedisSlow: accepting an event takes one command and one write to disk.',
        'Check the CPU of ingress; add replicas.',
      ],
    },
    {
      name: 'SluiceQueueFull',
      expr: 'sum(rate(sluice_ingress_events_total{result="full"}[5m])) > 0',
      for: '10m',
      severity: 'warning',
      summary: 'A stream has reached its quota.',
      impact: 'Its producer gets 429 `queue_full` until the retention of some events ends.',
      steps: [
        'Find the stream: its producer gets the 429; `redis-cli --bigkeys` names the largest queue, `{q:<workspace>:<stream>}`.',
        'Shorten `spec.retention` of the stream. If Redis has the memory, you can raise `SLUICE_QUEUE_MAX_BYTES` of the controller instead.',
      ],
    },
  ],
};

export const routing: AlertGroup = {
  name: 'sluice-routing',
  rules: [
    {
      name: 'SluiceRoutingStuck',
      expr: 'max(sluice_work_overdue_seconds{index="queues"}) > 30',
      for: '2m',
      severity: 'critical',
      summary: 'Queues have waited for a router for more than 30 seconds.',
      impact: 'Their events are kept and reach no partner until a router takes the queue.',
      steps: [
        'Check that routers run and are ready (SluiceRoleMissing). In their log, `work failed, tried again` names the queue.',
        'Check `sluice_work_due{index="queues"}`. If it stays at one, a single queue is the problem. If it is high, add routers.',
      ],
    },
    {
      name: 'SluiceRoutingLate',
      expr: `${p99('sluice_router_lag_seconds')} > 30`,
      for: '10m',
      severity: 'warning',
      summary: 'Events are routed more than 30 seconds after they were accepted.',
      impact: 'Partners get events late.',
      steps: [
        'If `sluice_router_token_waits_total` grows, an account has no tokens (SluiceAccountsOutOfTokens).',
        'If `sluice_router_held_total{cause="unreachable"}` grows, a part of Redis does not answer.',
        'Otherwise check the CPU of the routers and of Redis. A queue has one router at a time: if a stream is too busy for one router, split it into several streams.',
      ],
    },
    {
      name: 'SluiceRouterFailing',
      expr: 'sum(rate(sluice_router_failures_total[5m])) > 0.2',
      for: '10m',
      severity: 'warning',
      summary: 'Routers fail to process queues and retry.',
      impact: 'The affected queues do not move. Nothing is lost.',
      steps: [
        'The log line `work failed, tried again` of the routers names the queue and the error.',
        'Check the alerts of Redis.',
      ],
    },
    {
      name: 'SluiceAccountsOutOfTokens',
      expr: 'max(sluice_controller_accounts_short) > 0',
      for: '15m',
      severity: 'info',
      summary: 'Accounts have spent their tokens.',
      impact: 'The events of their streams are kept, and not routed until the accounts have tokens again.',
      steps: [
        '`kubectl get accounts` lists them, with the reason `InsufficientTokens` in their conditions.',
        'Raise `spec.includedTokens` of the Account, or make it `Metered`. Routing resumes by itself.',
      ],
    },
  ],
};

export const delivery: AlertGroup = {
  name: 'sluice-delivery',
  rules: [
    {
      name: 'SluiceDeliveryStuck',
      expr: 'max(sluice_work_overdue_seconds{index="subscriptions"}) > 30',
      for: '2m',
      severity: 'critical',
      summary: 'Subscriptions have waited for a dispatcher for more than 30 seconds.',
      impact: 'Their partners get no events. The events are kept.',
      steps: [
        'Check that dispatchers run and are ready (SluiceRoleMissing). Check their log.',
        'If `sluice_dispatcher_attempts_in_flight` is near 4,096 at each dispatcher, slow endpoints use all slots: add dispatchers.',
      ],
    },
    {
      name: 'SluiceReplaysStuck',
      expr: 'max(sluice_work_overdue_seconds{index="replays"}) > 300',
      for: '5m',
      severity: 'warning',
      summary: 'Replays have been charged and not completed for more than five minutes.',
      impact: 'Partners have paid for events that they have not received yet.',
      steps: ['Dispatchers complete replays: check that they run, and check their log.'],
    },
    {
      name: 'SluiceDispatcherFailing',
      expr: 'sum(rate(sluice_dispatcher_failures_total[5m])) > 0.2',
      for: '10m',
      severity: 'warning',
      summary: 'Dispatchers fail to process subscriptions and retry.',
      impact: 'The affected subscriptions get no events. Nothing is lost.',
      steps: [
        'The log line `work failed, tried again` of the dispatchers names the subscription and the error.',
        '`subscription could not be opened` means that the dispatcher and the controller have different root keys.',
      ],
    },
    {
      name: 'SluiceAttemptsFailing',
      expr: [
        `${share('sluice_dispatcher_attempts_total{outcome!="delivered"}', 'sluice_dispatcher_attempts_total', '15m')} > 0.5`,
        'sum(rate(sluice_dispatcher_attempts_total[15m])) > 0.1',
      ].join(' and '),
      for: '15m',
      severity: 'warning',
      summary: 'More than half of all attempts fail.',
      impact: 'Partners get events late. By default each event is retried for three days.',
      steps: [
        '`sum by (reason) (rate(sluice_dispatcher_attempts_total{outcome!="delivered"}[15m]))`: if `connect_timeout`, `dns_failed` and the like affect all endpoints, check your network: egress, DNS, NetworkPolicies.',
        '`http_4xx` and `http_5xx` are answers of partners. `kubectl get subscriptions -A` shows the affected Subscriptions.',
        '`address_refused`: endpoints resolve to addresses that are not public and not in `SLUICE_ALLOWED_NETWORKS`.',
      ],
    },
    {
      name: 'SluiceDeadLetters',
      expr: 'sum(increase(sluice_dispatcher_events_total{result="dead"}[1h])) > 0',
      for: '0m',
      severity: 'info',
      summary: 'Events have used up their retry schedule.',
      impact: 'Their partners have not received them, and can replay or recover them until the retention ends.',
      steps: [
        'Partners find them in their inbox, with every attempt: `GET /waas/integrations/{integration}/events?state=dead`.',
      ],
    },
    {
      name: 'SluiceEndpointsGone',
      expr: 'sum(increase(sluice_dispatcher_events_total{result="gone"}[1h])) > 0',
      for: '0m',
      severity: 'info',
      summary: 'Endpoints have answered 410 and are disabled.',
      impact: 'Their partners get no events until they enable the endpoints again. The events are kept.',
      steps: [
        '`kubectl get subscriptions -A` shows `Live=False` with the reason `EndpointDisabled`. Their partners have to act.',
      ],
    },
    {
      name: 'SluiceBacklogAtRisk',
      expr: 'max(sluice_controller_backlogs_at_risk) > 0',
      for: '5m',
      severity: 'warning',
      summary: 'Subscriptions have undelivered events near the end of their retention.',
      impact: 'When the retention ends, these events expire undelivered.',
      steps: [
        'Find the Subscriptions with the condition `BacklogAtRisk`. Its message shows since when the oldest event waits, and why nothing is sent.',
        'Remove the cause (a block, a suspension, a failing endpoint), or extend `spec.retention` of the stream, which takes effect at once.',
      ],
    },
    {
      name: 'SluiceBacklogGrowing',
      expr: 'max(sluice_dispatcher_open_deliveries) > 10000 and max(deriv(sluice_dispatcher_open_deliveries[30m])) > 0',
      for: '30m',
      severity: 'warning',
      summary: 'More than 10,000 deliveries wait, and the number grows.',
      impact: 'Partners get events late.',
      steps: [
        'If few subscriptions wait (`sluice_work_waiting{index="subscriptions"}`), their endpoints are slow or fail.',
        'If many wait and the CPU of the dispatchers is used up, add dispatchers.',
      ],
    },
  ],
};
