import { type AlertGroup, by, logsOf, p99, podsOf, share } from './alert-rule.ts';

export const ingress: AlertGroup = {
  name: 'sluice-ingress',
  rules: [
    {
      name: 'SluiceIngressErrors',
      expr: `${share('sluice_ingress_requests_total{code=~"5.."}', 'sluice_ingress_requests_total', '5m')} > 0.01`,
      for: '5m',
      severity: 'critical',
      summary: 'Ingress responds to more than 1 % of the events with a 5xx status.',
      impact: 'Producers must retry these events. Events that are not retried are lost.',
      steps: [
        'Run the query `sum by (code) (rate(sluice_ingress_requests_total[5m]))`, and check the alerts for Redis. Ingress responds with 503 if it cannot store events.',
        'If `sluice_ingress_held_bytes` is close to its limit, ingress receives requests faster than it can store them. To resolve this, add replicas.',
        'Check the log of ingress for the messages `store operation failed` and `request failed`.',
      ],
    },
    {
      name: 'SluiceIngressSlow',
      expr: `${p99('sluice_ingress_request_duration_seconds')} > 1`,
      for: '10m',
      severity: 'warning',
      summary: 'Ingress needs more than one second to accept 1 % of the events.',
      impact: 'Producers have to wait longer, or their requests time out and are retried.',
      steps: [
        'Run `redis-cli SLOWLOG GET`, and see SluiceRedisSlow. To accept an event, Redis runs one command and one write to disk.',
        'Check the CPU usage of ingress, and add replicas if necessary.',
      ],
    },
    {
      name: 'SluiceQueueFull',
      expr: `sum ${by()} (rate(sluice_ingress_events_total{result="full"}[5m])) > 0`,
      for: '10m',
      severity: 'warning',
      summary: 'A stream has reached its quota.',
      impact: 'The producer receives 429 `queue_full` until the retention period of some events ends.',
      steps: [
        'Run `redis-cli --bigkeys` to find the largest queue, which has the name `{q:<workspace>:<stream>}`. The producer of this stream receives the 429 responses.',
        'Decrease `spec.retention` of the stream. If Redis has enough memory, you can also increase `SLUICE_QUEUE_MAX_BYTES` of the controller.',
      ],
    },
  ],
};

export const routing: AlertGroup = {
  name: 'sluice-routing',
  rules: [
    {
      name: 'SluiceRoutingStuck',
      expr: `max ${by()} (sluice_work_overdue_seconds{index="queues"}) > 30`,
      for: '2m',
      severity: 'critical',
      summary: 'Queues have been waiting to be routed for more than 30 seconds.',
      impact: 'The events in these queues are kept, but they are not delivered until they are routed.',
      steps: [
        `Run \`${podsOf('router')}\` to check that the routers are running and ready. Check their log for the message \`work failed, tried again\`, which contains the queue.`,
        'Check `sluice_work_due{index="queues"}`. If the value stays at one, the problem affects a single queue. If the value is high, add routers.',
        'If events are in parts (`SLUICE_LAYOUT=parts`), check the dispatchers instead. If `sluice_dispatcher_parts_held{cause="control_data"}` is above zero, the controller has to write control data to Redis again (SluiceNoLeader, SluiceLeaderIdle).',
      ],
    },
    {
      name: 'SluiceRoutingLate',
      expr: `${p99('sluice_router_lag_seconds')} > 30`,
      for: '10m',
      severity: 'warning',
      summary: 'Events are routed more than 30 seconds after they were accepted.',
      impact: 'Partners receive events late.',
      steps: [
        'Run the query `sum by (cause) (rate(sluice_router_token_waits_total[5m]))`. If it is above zero, an account does not have enough tokens (SluiceAccountsOutOfTokens).',
        'If `sluice_router_held_total{cause="unreachable"}` increases, a part of Redis does not respond.',
        'Otherwise, check the CPU usage of the routers and of Redis. Only one router can process a queue at a time. If a stream is too large for one router, split it into several streams.',
      ],
    },
    {
      name: 'SluiceRouterFailing',
      expr: `sum ${by()} (rate(sluice_router_failures_total[5m])) > 0.2`,
      for: '10m',
      severity: 'warning',
      summary: 'Routers fail to process queues. They retry automatically.',
      impact: 'Events in the affected queues are delayed. No events are lost.',
      steps: [
        `Run \`${logsOf('router')}\` to find the message \`work failed, tried again\`, which contains the queue and the error.`,
        'Check the alerts for Redis.',
      ],
    },
    {
      name: 'SluiceAccountsOutOfTokens',
      expr: `max ${by()} (sluice_controller_accounts_short) > 0`,
      for: '15m',
      severity: 'info',
      summary: 'Accounts have used all of their tokens.',
      impact: 'Events of the affected streams are kept. They are routed after the accounts have tokens again.',
      steps: [
        'Run `kubectl get accounts` to find the accounts. Their conditions have the reason `InsufficientTokens`.',
        'Increase `spec.includedTokens` of the Account, or change its plan to `Metered`. Routing resumes automatically.',
      ],
    },
  ],
};

export const delivery: AlertGroup = {
  name: 'sluice-delivery',
  rules: [
    {
      name: 'SluiceDeliveryStuck',
      expr: `max ${by()} (sluice_work_overdue_seconds{index=~"subscriptions|parts"}) > 30`,
      for: '2m',
      severity: 'critical',
      summary:
        'Subscriptions, or parts with their events, have been waiting for a dispatcher for more than 30 seconds.',
      impact: 'The partners of these subscriptions do not receive events. The events are kept.',
      steps: [
        `Run \`${podsOf('dispatcher')}\` to check that the dispatchers are running and ready. Check their log for errors.`,
        'If `sluice_dispatcher_attempts_in_flight` (or `sluice_dispatcher_claims`, if events are in parts) is close to 4,096 on each dispatcher, slow endpoints are using all slots. To resolve this, add dispatchers.',
        'If events are in parts, run the query `sum by (instance, duty) (sluice_dispatcher_parts)`. Each stream has a part, and each part needs a dispatcher as its home.',
      ],
    },
    {
      name: 'SluiceReplaysStuck',
      expr: `max ${by()} (sluice_work_overdue_seconds{index="replays"}) > 300`,
      for: '5m',
      severity: 'warning',
      summary: 'Replays have been charged for more than five minutes but are not complete.',
      impact: 'Partners have paid for events that they have not received yet.',
      steps: [
        `Run \`${logsOf('dispatcher')}\` to find errors. Dispatchers complete replays, so check that they are running.`,
      ],
    },
    {
      name: 'SluiceDispatcherFailing',
      expr: `sum ${by()} (rate(sluice_dispatcher_failures_total[5m])) > 0.2`,
      for: '10m',
      severity: 'warning',
      summary: 'Dispatchers fail to process subscriptions. They retry automatically.',
      impact: 'The affected subscriptions do not receive events. No events are lost.',
      steps: [
        `Run \`${logsOf('dispatcher')}\` to find the message \`work failed, tried again\`, which contains the subscription and the error. If events are in parts, set \`SLUICE_LOG_LEVEL=debug\` to find the messages with the name of the queue and the error.`,
        'The message `subscription could not be opened` means that the dispatcher and the controller use different root keys.',
      ],
    },
    {
      name: 'SluiceClaimsLost',
      expr: `sum ${by()} (rate(sluice_dispatcher_returned_claims_total{cause=~"evicted|lost"}[15m])) > 0.2`,
      for: '15m',
      severity: 'warning',
      summary: 'Dispatchers keep losing events that they have claimed.',
      impact: 'The affected events are delivered seconds late, and some of them twice. No events are lost.',
      steps: [
        'Run the query `sum by (cause) (rate(sluice_dispatcher_returned_claims_total[15m]))`. The cause `evicted` means that dispatchers stop responding to Redis for more than three seconds: check for restarts, a blocked event loop (SluiceEventLoopBlocked), and the CPU limit.',
        'The cause `lost` means that messages from Redis do not arrive. Check the network, and the log of Redis for clients that were closed because of `client-output-buffer-limit`.',
      ],
    },
    {
      name: 'SluiceAttemptsFailing',
      expr: [
        `${share('sluice_dispatcher_attempts_total{outcome!="delivered"}', 'sluice_dispatcher_attempts_total', '15m')} > 0.5`,
        `sum ${by()} (rate(sluice_dispatcher_attempts_total[15m])) > 0.1`,
      ].join(' and '),
      for: '15m',
      severity: 'warning',
      summary: 'More than half of all attempts are failing.',
      impact: 'Partners receive events late. By default, each event is retried for three days.',
      steps: [
        'Run the query `sum by (reason) (rate(sluice_dispatcher_attempts_total{outcome!="delivered"}[15m]))`. If `connect_timeout`, `dns_failed` or similar reasons affect all endpoints, check egress, DNS and NetworkPolicies in your network.',
        'The reasons `http_4xx` and `http_5xx` are responses from partners. Run `kubectl get subscriptions.sluice.dev -A` to find the affected Subscriptions.',
        'The reason `address_refused` means that an endpoint resolves to an address that is not public and is not in `SLUICE_ALLOWED_NETWORKS`.',
      ],
    },
    {
      name: 'SluiceDeadLetters',
      expr: `sum ${by()} (increase(sluice_dispatcher_events_total{result="dead"}[1h])) > 0`,
      for: '0m',
      severity: 'info',
      summary: 'Events have failed after all retries.',
      impact:
        'Partners have not received these events. They can replay or recover the events until the retention period ends.',
      steps: [
        'Run the query `sum by (reason) (increase(sluice_dispatcher_attempts_total{outcome!="delivered"}[1h]))` to find out why attempts fail. Partners can call `GET /waas/integrations/{integration}/events?state=dead` to find the events and their attempts in the inbox.',
      ],
    },
    {
      name: 'SluiceEndpointsGone',
      expr: `sum ${by()} (increase(sluice_dispatcher_events_total{result="gone"}[1h])) > 0`,
      for: '0m',
      severity: 'info',
      summary: 'Endpoints responded with status 410 and are disabled.',
      impact: 'Partners do not receive events until they enable the endpoints again. The events are kept.',
      steps: [
        'Run `kubectl get subscriptions.sluice.dev -A` to find subscriptions with `Live=False` and the reason `EndpointDisabled`. Ask the partners to enable their endpoints.',
      ],
    },
    {
      name: 'SluiceBacklogAtRisk',
      expr: `max ${by()} (sluice_controller_backlogs_at_risk) > 0`,
      for: '5m',
      severity: 'warning',
      summary: 'Subscriptions have undelivered events that are close to the end of their retention period.',
      impact: 'When the retention period ends, these events expire without being delivered.',
      steps: [
        'Run `kubectl get subscriptions.sluice.dev -A -o yaml` to find the Subscriptions with the condition `BacklogAtRisk`. The message shows how long the oldest event has been waiting and why it is not sent.',
        'Resolve the cause, such as a block, a suspension or a failing endpoint. You can also increase `spec.retention` of the stream, which takes effect immediately.',
      ],
    },
    {
      name: 'SluiceBacklogGrowing',
      expr: `max ${by()} (sluice_dispatcher_open_deliveries) > 10000 and max ${by()} (deriv(sluice_dispatcher_open_deliveries[30m])) > 0`,
      for: '30m',
      severity: 'warning',
      summary: 'More than 10,000 deliveries are waiting, and the number is increasing.',
      impact: 'Partners receive events late.',
      steps: [
        'Run the query `max by (index) (sluice_work_waiting{index=~"subscriptions|parts"})`. If only a few subscriptions or parts are waiting, their endpoints are slow or failing.',
        'If many are waiting and the dispatchers use all of their CPU, add dispatchers.',
      ],
    },
  ],
};
