import { type AlertGroup, p99, share } from './alert-rule.ts';

export const ingress: AlertGroup = {
  name: 'sluice-ingress',
  rules: [
    {
      name: 'SluiceIngressErrors',
      expr: `${share('sluice_ingress_requests_total{code=~"5.."}', 'sluice_ingress_requests_total', '5m')} > 0.01`,
      for: '5m',
      severity: 'critical',
      summary: 'More than one in a hundred events is answered with 5xx.',
      impact: 'Producers have to repeat them; who does not loses them.',
      steps: [
        'See the alerts of Redis first: 503 is what ingress says while it cannot store.',
        '`sluice_ingress_held_bytes` near its limit: requests come faster than they are stored; add replicas.',
        '`store operation failed` and `request failed` in the log of ingress.',
      ],
    },
    {
      name: 'SluiceIngressSlow',
      expr: `${p99('sluice_ingress_request_duration_seconds')} > 1`,
      for: '10m',
      severity: 'warning',
      summary: 'One in a hundred events takes more than a second to be accepted.',
      impact: 'Producers wait, or give up and repeat.',
      steps: [
        'See SluiceRedisSlow: an acceptance is one command and a write to disk.',
        'See the CPU of ingress; add replicas.',
      ],
    },
    {
      name: 'SluiceQueueFull',
      expr: 'sum(rate(sluice_ingress_events_total{result="full"}[5m])) > 0',
      for: '10m',
      severity: 'warning',
      summary: 'A stream has reached its quota.',
      impact: 'Its producer gets 429 `queue_full` until events of it reach the end of their retention.',
      steps: [
        'Find it: its producer gets the answers; `redis-cli --bigkeys` names the largest queue, `{q:<workspace>:<stream>}`.',
        'Shorten the `spec.retention` of the stream, or raise `SLUICE_QUEUE_MAX_BYTES` at the controller, if Redis has the memory.',
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
      summary: 'Queues have waited for a router for more than half a minute.',
      impact: 'Their events are kept and reach no partner.',
      steps: [
        'See whether routers run and are ready (SluiceRoleMissing), and their log: `work failed, tried again` names the queue.',
        '`sluice_work_due{index="queues"}`: one, and it stays: that queue is the trouble. Many: add routers.',
      ],
    },
    {
      name: 'SluiceRoutingLate',
      expr: `${p99('sluice_router_lag_seconds')} > 30`,
      for: '10m',
      severity: 'warning',
      summary: 'Events are routed more than half a minute after they were accepted.',
      impact: 'They reach partners late.',
      steps: [
        '`sluice_router_token_waits_total` grows: an account has no tokens (SluiceAccountsOutOfTokens).',
        '`sluice_router_held_total{cause="unreachable"}` grows: a part of Redis does not answer.',
        'Otherwise see the CPU of the routers and of Redis. A queue has one router at a time: one that is too busy for it has to be split into several streams.',
      ],
    },
    {
      name: 'SluiceRouterFailing',
      expr: 'sum(rate(sluice_router_failures_total[5m])) > 0.2',
      for: '10m',
      severity: 'warning',
      summary: 'Work on queues fails and is begun again, again and again.',
      impact: 'The queues concerned stand still; nothing is lost.',
      steps: [
        '`work failed, tried again` in the log of the routers names queue and error.',
        'See the alerts of Redis.',
      ],
    },
    {
      name: 'SluiceAccountsOutOfTokens',
      expr: 'max(sluice_controller_accounts_short) > 0',
      for: '15m',
      severity: 'info',
      summary: 'Accounts have spent their tokens.',
      impact: 'The events of their streams are kept and not distributed until they are topped up.',
      steps: [
        '`kubectl get accounts` names them; `InsufficientTokens` stands in their conditions.',
        'Raise `spec.includedTokens` of the Account, or make it `Metered`; distribution goes on by itself.',
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
      summary: 'Subscriptions have waited for a dispatcher for more than half a minute.',
      impact: 'Their partners get nothing; the events are kept.',
      steps: [
        'See whether dispatchers run and are ready (SluiceRoleMissing), and their log.',
        '`sluice_dispatcher_attempts_in_flight` near 4,096 at each: slow endpoints take all the room; add dispatchers.',
      ],
    },
    {
      name: 'SluiceReplaysStuck',
      expr: 'max(sluice_work_overdue_seconds{index="replays"}) > 300',
      for: '5m',
      severity: 'warning',
      summary: 'Replays that were charged have waited for their completion for more than five minutes.',
      impact: 'Their partners have paid for events that do not come yet.',
      steps: ['Dispatchers complete them: see whether they run, and their log.'],
    },
    {
      name: 'SluiceDispatcherFailing',
      expr: 'sum(rate(sluice_dispatcher_failures_total[5m])) > 0.2',
      for: '10m',
      severity: 'warning',
      summary: 'Work on subscriptions fails and is begun again, again and again.',
      impact: 'The subscriptions concerned stand still; nothing is lost.',
      steps: [
        '`work failed, tried again` in the log of the dispatchers names subscription and error.',
        '`subscription could not be opened`: the dispatcher has another root key than the controller.',
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
      impact: 'Partners get events late; each is tried again for three days.',
      steps: [
        '`sum by (reason) (rate(sluice_dispatcher_attempts_total{outcome!="delivered"}[15m]))`: `connect_timeout`, `dns_failed` and the like for everybody are a trouble of our own network: egress, DNS, a NetworkPolicy.',
        '`http_4xx` and `http_5xx` are answers of partners; REST and the conditions of the Subscriptions say whose.',
        '`address_refused`: endpoints resolve to addresses that `SLUICE_ALLOWED_NETWORKS` does not allow.',
      ],
    },
    {
      name: 'SluiceDeadLetters',
      expr: 'sum(increase(sluice_dispatcher_events_total{result="dead"}[1h])) > 0',
      for: '0m',
      severity: 'info',
      summary: 'Events have used up all their attempts.',
      impact: 'Their partners have not got them; they can replay or recover them until the retention ends.',
      steps: [
        'Partners see them in their inbox (`GET /waas/integrations/{integration}/events?state=dead`), with every attempt.',
      ],
    },
    {
      name: 'SluiceEndpointsGone',
      expr: 'sum(increase(sluice_dispatcher_events_total{result="gone"}[1h])) > 0',
      for: '0m',
      severity: 'info',
      summary: 'Endpoints have answered 410 and are disabled.',
      impact: 'Their partners get nothing until they enable them again; the events are kept.',
      steps: [
        '`kubectl get subscriptions -A` shows `Live=False` with the reason `EndpointDisabled`; their partners have to act.',
      ],
    },
    {
      name: 'SluiceBacklogAtRisk',
      expr: 'max(sluice_controller_backlogs_at_risk) > 0',
      for: '5m',
      severity: 'warning',
      summary: 'Subscriptions have events that are near the end of their retention.',
      impact: 'When it ends, these events go undelivered.',
      steps: [
        '`kubectl get subscriptions -A` shows `BacklogAtRisk`; its message says since when the oldest waits, and why nothing is sent.',
        'End what holds them up (a block, a suspension, an endpoint that fails), or prolong `spec.retention` of the stream, which helps at once.',
      ],
    },
    {
      name: 'SluiceBacklogGrowing',
      expr: 'max(sluice_dispatcher_open_deliveries) > 10000 and max(deriv(sluice_dispatcher_open_deliveries[30m])) > 0',
      for: '30m',
      severity: 'warning',
      summary: 'More than 10,000 deliveries wait, and they become more.',
      impact: 'Partners get events late.',
      steps: [
        'Few subscriptions wait (`sluice_work_waiting{index="subscriptions"}`): their endpoints are slow or fail.',
        'Many wait, and the CPU of the dispatchers is used up: add dispatchers.',
      ],
    },
  ],
};
