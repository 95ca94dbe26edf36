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
      impact: 'Producers need to retry these events. Events that are not retried will be lost.',
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
        'Run `redis-cli --bigkeys` to find the largest keys. Their names begin with `{q:<workspace>:<stream>:0}`. The producer of this stream receives the 429 responses.',
        'Decrease `spec.retention` of the stream. If Redis has enough memory, you can also increase `SLUICE_QUEUE_MAX_BYTES` of the controller.',
      ],
    },
    {
      name: 'SluiceStoragePressure',
      expr: `sum ${by()} (rate(sluice_ingress_memory_refusals_total{reason="share"}[5m])) > 0`,
      for: '5m',
      severity: 'warning',
      summary: 'An account stores more than its share of the memory of Redis, and its events are rejected.',
      impact:
        'Redis uses more than 70 % of its memory. The producers of the largest accounts receive 429 `storage_pressure`. Other producers are not affected.',
      steps: [
        'Run the query `max by (tenant) (sluice_workspace_stored_bytes)` to find the workspaces that store the most. To find the workspace of a public id, use `kubectl get workspaces -o custom-columns=NAME:.metadata.name,ID:.status.publicId`.',
        'Decrease `spec.retention` of the streams in these workspaces, or increase the memory of Redis (`maxmemory`).',
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
      summary:
        'Stored events have been waiting for more than 30 seconds to be routed or removed, and no dispatcher does it.',
      impact:
        'New events of most streams are still routed when they are stored. Events that are waiting will be kept, but they will not be delivered. Events whose retention period has ended will continue to use memory.',
      steps: [
        `Run \`${podsOf('dispatcher')}\` to check that the dispatchers are running and ready. One dispatcher is the home of each part: it routes stored events and removes expired events.`,
        'Check `sluice_work_due{index="queues"}`. If the value stays at one, the problem affects a single part. If the value is high, add dispatchers.',
        'Run the query `sum by (cause) (sluice_dispatcher_parts_held)` to find out why events are not routed when they are stored. For the cause `control_data`, see SluiceControlDataMissing.',
      ],
    },
    {
      name: 'SluiceControlDataMissing',
      expr: `max ${by()} (sluice_dispatcher_parts_held_seconds{cause="control_data"}) > 30`,
      for: '2m',
      severity: 'critical',
      summary: 'Control data of streams is missing in Redis and has not been written again.',
      impact:
        'Ingress responds with 503 for these streams, or stores their events without routing them. Stored events are kept, but they are not delivered.',
      steps: [
        `Run \`${podsOf('controller')}\` to check that the controllers are running. Only the leader writes control data, so also check SluiceNoLeader and SluiceLeaderIdle.`,
        `Run \`${logsOf('controller')}\` to find the message \`cannot reconcile; retrying\`. It contains the object whose control data cannot be written, and the error.`,
        'Find out why the data was lost. For example, Redis was emptied, restored from a backup, or it failed over to a delayed replica.',
      ],
    },
    {
      name: 'SluiceRoutingLate',
      expr: `max ${by()} (sluice_dispatcher_parts_held_seconds{cause=~"wide_event|catching_up"}) > 60`,
      for: '10m',
      severity: 'warning',
      summary: 'Dispatchers have been catching up on stored events of a stream for more than one minute.',
      impact: 'Partners receive the events of this stream late.',
      steps: [
        'Run the query `sum by (cause) (sluice_dispatcher_parts_held)`. For the cause `wide_event`, an event has more than 1,000 receiving subscriptions, so it is routed in several steps.',
        'Run the query `rate(sluice_dispatcher_routed_total[5m])`. If it is zero, see SluiceRoutingStuck and SluiceDispatcherFailing.',
        'Otherwise, check the CPU usage of Redis. All events of a stream are routed by one Redis node. If a stream is too large for it, split it into several streams.',
      ],
    },
    {
      name: 'SluiceAccountsOutOfTokens',
      expr: `max ${by()} (sluice_controller_accounts_short) > 0`,
      for: '15m',
      severity: 'info',
      summary: 'Accounts have used all of their tokens.',
      impact: 'Events of these streams will be kept. They will be routed when the accounts have tokens again.',
      steps: [
        'Run `kubectl get accounts` to find the accounts. Their conditions have the reason `InsufficientTokens`. The number of streams with waiting events is `sum(sluice_dispatcher_parts_held{cause="tokens"})`.',
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
      expr: `max ${by()} (sluice_work_overdue_seconds{index="parts"}) > 30`,
      for: '2m',
      severity: 'critical',
      summary: 'Streams with events to deliver have been waiting for a dispatcher for more than 30 seconds.',
      impact: 'The partners of these streams will not receive any events. The events are kept.',
      steps: [
        `Run \`${podsOf('dispatcher')}\` to check that the dispatchers are running and ready. Check their log for errors.`,
        'Run the query `sum by (instance, duty) (sluice_dispatcher_parts)`. Each stream has a part, and each part needs a dispatcher as its home.',
      ],
    },
    {
      name: 'SluiceDispatcherFull',
      expr: `max ${by()} (sluice_dispatcher_claims) > 3900`,
      for: '5m',
      severity: 'warning',
      summary: 'A dispatcher has claimed almost 4,096 events, which is the limit.',
      impact: 'Events of its streams wait until other attempts have ended, unless another dispatcher sends them.',
      steps: [
        'Run the query `sum by (instance) (sluice_dispatcher_attempts_in_flight)`. If the value is high, slow endpoints are using the claims. To resolve this, add dispatchers.',
        'If the value is low, results are written too slowly. Check SluiceRedisSlow, and the CPU usage of the dispatcher.',
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
      summary: 'Dispatchers fail to process streams or subscriptions. They will retry automatically.',
      impact: 'The affected events are routed, delivered, or removed late. No events are lost.',
      steps: [
        `Run \`${logsOf('dispatcher')}\` to find the error. If \`SLUICE_LOG_LEVEL\` is \`debug\`, the log contains each failure, with the name of the queue.`,
        'Check the alerts for Redis.',
        'The message `subscription could not be opened` means that the dispatcher does not have the root key that the controller has used. See [Rotate the root key](install.md#rotate-the-root-key).',
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
        'The reason `address_refused` means that an endpoint resolves to an address that is not public and is not in `SLUICE_ALLOWED_NETWORKS`, or that is in `SLUICE_REFUSED_NETWORKS`.',
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
      impact: 'Partners will not receive any events until they have enabled the endpoints again. The events are kept.',
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
      impact: 'When the retention period ends, these events will expire without being delivered.',
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
        'Run the query `max(sluice_work_waiting{index="parts"})`. It is the number of streams with events to deliver. If there are only a few, the endpoints of their subscriptions are slow or failing.',
        'If many are waiting and the dispatchers use all of their CPU, add dispatchers.',
      ],
    },
  ],
};
