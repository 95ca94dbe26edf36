import { type AlertGroup, by, logsOf, p99, podsOf, share } from './alert-rule.ts';

export const ingress: AlertGroup = {
  name: 'sluice-ingress',
  rules: [
    {
      name: 'SluiceIngressErrors',
      expr: `${share('sluice_ingress_requests_total{code=~"5.."}', 'sluice_ingress_requests_total', '5m')} > 0.01`,
      // The errors of a short failover remain in the window for five minutes.
      for: '7m',
      severity: 'critical',
      summary: 'Ingress responds to more than 1 % of all events with a 5xx status.',
      impact: 'Producers need to retry these events. Events are lost if the producer does not retry them.',
      steps: [
        'Run the query `sum by (code) (rate(sluice_ingress_requests_total[5m]))` and check the Redis alerts. Ingress responds with 503 if an event cannot be stored.',
        'If `sluice_ingress_held_bytes` exceeds half of its limit, requests arrive faster than they can be stored. Add more replicas.',
        'Check the ingress log for the messages `store operation failed` and `request failed`.',
      ],
    },
    {
      name: 'SluiceIngressSlow',
      expr: `${p99('sluice_ingress_request_duration_seconds')} > 1`,
      for: '10m',
      severity: 'warning',
      summary: '1 % of all events take more than one second to be accepted.',
      impact: 'Producers have to wait longer, or their requests time out and are retried.',
      steps: [
        'Run `redis-cli SLOWLOG GET` and see SluiceRedisSlow. For each event, Redis runs one command and one disk write.',
        'Check the CPU usage of ingress and add more replicas if necessary.',
      ],
    },
    {
      name: 'SluiceQueueFull',
      expr: `sum ${by()} (rate(sluice_ingress_events_total{result="full"}[5m])) > 0`,
      for: '10m',
      severity: 'warning',
      summary: 'A stream has reached its quota.',
      impact: 'The producer receives a 429 `queue_full` response until the retention period of some events has ended.',
      steps: [
        'Run `redis-cli --bigkeys` to find the largest keys. The names of these keys begin with `{q:<workspace>:<stream>:0}`. The producer of this stream receives the 429 responses.',
        'Decrease `spec.retention` of the stream. If Redis has enough memory, you can also increase the value of `SLUICE_QUEUE_MAX_BYTES` for the controller.',
      ],
    },
    {
      name: 'SluiceStoragePressure',
      expr: `sum ${by()} (rate(sluice_ingress_memory_refusals_total{reason="share"}[5m])) > 0`,
      for: '5m',
      severity: 'warning',
      summary: 'Ingress rejects the events of an account that stores more than its share of the Redis memory.',
      impact:
        'Redis uses more than 70 % of its memory. The producers of the largest accounts receive 429 `storage_pressure`. Other producers are not affected.',
      steps: [
        'Run the query `max by (tenant) (sluice_workspace_stored_bytes)` to find the workspaces with the highest number of stored bytes. To find the workspace with a given public id, use `kubectl get workspaces -o custom-columns=NAME:.metadata.name,ID:.status.publicId`.',
        'Decrease `spec.retention` for the streams in these workspaces, or increase the Redis memory (`maxmemory`).',
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
      summary: 'Stored events have been waiting for a dispatcher to route or remove them for more than 30 seconds.',
      impact:
        'For most streams, new events are still routed immediately. Waiting events are kept, but they are not delivered. Expired events continue to use memory.',
      steps: [
        `Run \`${podsOf('dispatcher')}\` to check that the dispatchers are running and ready. Each part has a dispatcher as its home, which routes stored events and removes expired events.`,
        'Check `sluice_work_due{index="queues"}`. If the value stays at one, only a single part is affected. If the value is high, add more dispatchers.',
        'Run the query `sum by (cause) (sluice_dispatcher_parts_held)` to find out why events are not routed immediately. For the cause `control_data`, see SluiceControlDataMissing.',
      ],
    },
    {
      name: 'SluiceControlDataMissing',
      expr: `max ${by()} (sluice_dispatcher_parts_held_seconds{cause="control_data"}) > 30`,
      for: '2m',
      severity: 'critical',
      summary: 'Control data of streams is missing in Redis and has not been restored.',
      impact:
        'Ingress responds with 503 for these streams or stores their events without routing them. Stored events are kept, but they are not delivered.',
      steps: [
        `Run \`${podsOf('controller')}\` to check that the controllers are running. Control data is only written by the leader, so you should also check SluiceNoLeader and SluiceLeaderIdle.`,
        `Run \`${logsOf('controller')}\` to find the message \`failed to reconcile, retrying\`. This message contains the affected object and the error.`,
        'Find out why the data was lost. For example, Redis may have been flushed or restored from a backup, or a failover to a delayed replica may have happened.',
      ],
    },
    {
      name: 'SluiceRoutingLate',
      expr: `max ${by()} (sluice_dispatcher_parts_held_seconds{cause=~"wide_event|catching_up"}) > 60`,
      for: '10m',
      severity: 'warning',
      summary: 'Dispatchers have been catching up on the stored events of a stream for more than one minute.',
      impact: 'Partners receive the events of this stream with a delay.',
      steps: [
        'Run the query `sum by (cause) (sluice_dispatcher_parts_held)`. The cause `wide_event` means that an event has more than 512 receiving subscriptions, so it is routed in several steps.',
        'Run the query `rate(sluice_dispatcher_routed_total[5m])`. If it is zero, see SluiceRoutingStuck and SluiceDispatcherFailing.',
        'If it is above zero, check the CPU usage of Redis. All events of a stream are routed on a single Redis node. If this is not enough for the stream, split it into several streams.',
      ],
    },
    {
      name: 'SluiceAccountsOutOfTokens',
      expr: `max ${by()} (sluice_controller_accounts_short) > 0`,
      for: '15m',
      severity: 'info',
      summary: 'Accounts have used all of their tokens.',
      impact: 'Sluice keeps the events of these accounts. It routes them when the accounts have tokens again.',
      steps: [
        'Run `kubectl get workspaces -o yaml` to find the workspaces with the `InsufficientTokens` condition. Their `spec.account` is the account. The number of streams with waiting events is `sum(sluice_dispatcher_parts_held{cause="tokens"})`.',
        'Increase the value of `spec.includedTokens` for the Account or change its plan to `Metered`. Routing resumes automatically.',
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
      summary: 'Streams with undelivered events have been waiting for a dispatcher for more than 30 seconds.',
      impact: 'The partners of these streams do not receive any events. The events are kept.',
      steps: [
        `Run \`${podsOf('dispatcher')}\` to check that the dispatchers are running and ready. Check the dispatcher logs for errors.`,
        'Run the query `sum by (instance, duty) (sluice_dispatcher_parts)`. Each stream has a part, which needs a dispatcher as its home.',
        'Check that all pods have the same `SLUICE_REDIS_URL`. After a change of the address, restart the pods of all roles.',
      ],
    },
    {
      name: 'SluiceDispatcherFull',
      expr: `max ${by()} (sluice_dispatcher_claims) > 3600`,
      for: '5m',
      severity: 'warning',
      summary:
        'A dispatcher has claimed more than 3,600 of at most 4,608 events, which leaves about 500 for one more workspace.',
      impact:
        'Several workspaces have slow endpoints. Their events wait until attempts have ended, unless another dispatcher sends them. Other busy workspaces may have to wait too.',
      steps: [
        'Run the query `sum by (instance) (sluice_dispatcher_attempts_in_flight)`. If the value is high, slow endpoints use the claims. Add more dispatchers.',
        'If the value is low, the results are not written fast enough. Check SluiceRedisSlow and check the CPU usage of the dispatcher.',
      ],
    },
    {
      name: 'SluiceReplaysStuck',
      expr: `max ${by()} (sluice_work_overdue_seconds{index="replays"}) > 300`,
      for: '5m',
      severity: 'warning',
      summary: 'Replays that were charged more than five minutes ago have not been completed.',
      impact: 'Partners have paid for events that they have not received yet.',
      steps: [
        `Run \`${logsOf('dispatcher')}\` to find errors. Replays are completed by dispatchers, so check that they are running.`,
      ],
    },
    {
      name: 'SluiceDispatcherFailing',
      expr: `sum ${by()} (rate(sluice_dispatcher_failures_total[5m])) > 0.2`,
      for: '10m',
      severity: 'warning',
      summary: 'Dispatchers fail to process streams or subscriptions. Dispatchers retry automatically.',
      impact: 'The affected events are routed, delivered, or removed with a delay. No events are lost.',
      steps: [
        `Run \`${logsOf('dispatcher')}\` to find the message \`work on a stream failed, retrying\`, which contains the workspace, the stream, and the error. The message appears at most once a minute. If \`SLUICE_LOG_LEVEL\` is set to \`debug\`, the log contains each failure.`,
        'Check the Redis alerts.',
        'The message `failed to open a subscription` indicates that the dispatcher does not have the root key used by the controller. See [Rotate the root key](operations.md#rotate-the-root-key).',
      ],
    },
    {
      name: 'SluiceClaimsLost',
      expr: `sum ${by()} (rate(sluice_dispatcher_returned_claims_total{cause=~"evicted|lost"}[15m])) > 0.2`,
      for: '15m',
      severity: 'warning',
      summary: 'Dispatchers keep losing events that they have claimed.',
      impact:
        'The affected events are delivered with a delay of a few seconds. Some of them are delivered twice. No events are lost.',
      steps: [
        'Run the query `sum by (cause) (rate(sluice_dispatcher_returned_claims_total[15m]))`. The cause `evicted` means that dispatchers did not respond to Redis for more than three seconds. Check for restarts, a blocked event loop (SluiceEventLoopBlocked), and the CPU limit.',
        'The cause `lost` means that messages from Redis do not arrive. Check the network, and the Redis log for clients that were closed because of `client-output-buffer-limit`.',
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
        'Run the query `sum by (reason) (rate(sluice_dispatcher_attempts_total{outcome!="delivered"}[15m]))`. If `connect_timeout`, `dns_failed`, or similar reasons affect all endpoints, check the egress, DNS, and NetworkPolicies of your network.',
        'The `http_4xx` and `http_5xx` reasons are responses from partners. Run `kubectl get subscriptions.sluice.dev -A` to find the affected Subscriptions.',
        "The `address_refused` reason indicates that an endpoint's address is neither public nor in `SLUICE_ALLOWED_NETWORKS`, or that it is in `SLUICE_REFUSED_NETWORKS`.",
      ],
    },
    {
      name: 'SluiceDeadLetters',
      expr: `sum ${by()} (increase(sluice_dispatcher_events_total{result="dead"}[1h])) > 0`,
      for: '0m',
      severity: 'info',
      summary: 'Events have failed after all retries.',
      impact:
        'Partners have not received these events. They can replay or recover these events until the retention period ends.',
      steps: [
        'Run the query `sum by (reason) (increase(sluice_dispatcher_attempts_total{outcome!="delivered"}[1h]))` to find out why attempts fail.',
        'Run `kubectl get subscriptions.sluice.dev -A` to find the Subscriptions with `true` in the `DEAD` column.',
        'Partners can call `GET /waas/integrations/{integration}/events?subscription={subscription}&state=dead` to list these events, and `GET /waas/integrations/{integration}/events/{event}` to get the attempts and responses of an event.',
      ],
    },
    {
      name: 'SluiceEventsExpired',
      expr: [
        `sum ${by()} (increase(sluice_dispatcher_expired_total[1h])) > 0`,
        `sum ${by()} (increase(sluice_dispatcher_not_routed_total{reason="expired"}[1h])) > 0`,
      ].join(' or '),
      for: '0m',
      severity: 'info',
      summary: 'Events have expired before they were delivered.',
      impact: 'Partners have not received these events and can no longer receive them.',
      steps: [
        'Run `kubectl get subscriptions.sluice.dev -A -o yaml` to find the Subscriptions with the `BacklogAtRisk` condition. Their `Live` and `EndpointFailing` conditions show why further events will expire.',
        'If there are none, the events belonged to a subscription without an endpoint that has not been pulled, or to a subscription that has been resumed in the meantime.',
      ],
    },
    {
      name: 'SluiceEndpointsGone',
      expr: `sum ${by()} (increase(sluice_dispatcher_events_total{result="gone"}[1h])) > 0`,
      for: '0m',
      severity: 'info',
      summary: 'Sluice has disabled endpoints that returned status 410.',
      impact: 'Partners do not receive any events until they re-enable their endpoints. The events are kept.',
      steps: [
        'Run `kubectl get subscriptions.sluice.dev -A` to find subscriptions with `Live=False` and the `EndpointDisabled` reason. Ask the partners to enable their endpoints.',
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
        'Run `kubectl get subscriptions.sluice.dev -A -o yaml` to find the Subscriptions with the `BacklogAtRisk` condition. Their `Live` and `EndpointFailing` conditions, and `status.delivery.lastAttempt`, show why the events have not been sent.',
        'Resolve the cause, such as a block, a suspended subscription, or a failing endpoint. You can also increase `spec.retention` for the stream, which takes effect immediately.',
      ],
    },
    {
      name: 'SluiceBacklogGrowing',
      expr: `max ${by()} (sluice_dispatcher_open_deliveries) > 10000 and max ${by()} (deriv(sluice_dispatcher_open_deliveries[30m])) > 0`,
      for: '30m',
      severity: 'warning',
      summary: 'More than 10,000 deliveries are waiting. This number is increasing.',
      impact: 'Partners receive events late.',
      steps: [
        'Run the query `max(sluice_work_waiting{index="parts"})`. The result is the number of streams with undelivered events. If the number is low, the endpoints of their subscriptions are slow or failing.',
        'If the number is high and the dispatchers are using all of their CPU, add more dispatchers.',
      ],
    },
  ],
};
