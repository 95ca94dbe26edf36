import { type AlertGroup, by, logsOf, p99, share } from './alert-rule.ts';

export const control: AlertGroup = {
  name: 'sluice-control',
  rules: [
    {
      name: 'SluiceNoLeader',
      expr: `max ${by()} (leader_election_master_status{name="sluice-controller"}) == 0`,
      for: '2m',
      severity: 'critical',
      summary: 'No controller is the leader.',
      impact:
        'Changes to custom resources are not applied. REST calls that wait for a change respond with 503. Events continue to flow unless control data in Redis is lost (SluiceControlDataMissing).',
      steps: [
        "Run `kubectl -n sluice-system get lease sluice-controller -o yaml` to find the Lease's holder.",
        'Check the controller log for the message `role cannot work`. The `LeaseUnavailable` reason indicates a problem with the API server, missing permissions for the Lease, or a missing namespace. `InstanceTaken` means that another namespace has an installation with the same name. The message shows which one, and what to change.',
      ],
    },
    {
      name: 'SluiceLeaderIdle',
      expr: `max ${by()} (sluice_controller_term_started) == 0 and max ${by()} (max_over_time(leader_election_master_status{name="sluice-controller"}[2m])) == 1`,
      for: '2m',
      severity: 'critical',
      summary: 'A controller holds the Lease but does not reconcile.',
      impact:
        'Changes to custom resources are not applied. REST calls that wait for a change respond with 503. Events continue to flow. Deletions are still completed within about two minutes.',
      steps: [
        `Run \`${logsOf('controller')}\` to find the message \`role cannot work\` or call \`GET /readyz\` on their ops port. The reason is \`TermNotStarted\`, \`ForeignRedis\`, or \`UnsupportedRedisFormat\`.`,
        'Run `kubectl -n sluice-system describe lease sluice-controller`. The output shows an Event for each replica that released the Lease after one minute of failures.',
        'Check the Redis alerts and check that the API server is responding. Before the controller starts reconciling, it lists all kinds and reads the `kube-system` namespace.',
      ],
    },
    {
      name: 'SluiceAdmissionPoliciesMissing',
      expr: `max ${by('role')} (sluice_admission_policies_missing) > 0`,
      for: '5m',
      severity: 'warning',
      summary: 'The role {{ $labels.role }} is not limited by the admission policies.',
      impact:
        'Sluice continues to work, but its service account has more permissions than the role requires. An attacker could use it to write Secrets of any type, for example.',
      steps: [
        'Run `kubectl get validatingadmissionpolicies,validatingadmissionpolicybindings` to check that the policies exist. If they are missing, run `helm upgrade` with the values of the release, or apply `config/rbac` if you did not install Sluice using Helm.',
        'Compare the user in the `the admission policies do not apply to this service account` log message with the user name in the `matchConditions` of the policies. Both names must be the same.',
      ],
    },
    {
      name: 'SluiceTwoLeaders',
      expr: `sum ${by()} (leader_election_master_status{name="sluice-controller"}) > 1`,
      for: '2m',
      severity: 'critical',
      summary: 'More than one controller is the leader.',
      impact:
        "Redis rejects all writes from the previous leader. If two clusters use the same Redis, they overwrite each other's data.",
      steps: [
        'Run `kubectl get leases.coordination.k8s.io -A` to check whether two installations share a Redis or the namespace of the Lease. Each installation requires a separate Redis and a separate namespace.',
      ],
    },
    {
      name: 'SluiceLeaderChangesOften',
      // The status does not show terms that start and end between two scrapes.
      expr: [
        `sum ${by()} (changes(leader_election_master_status{name="sluice-controller"}[1h])) > 8`,
        `sum ${by()} (increase(sluice_controller_terms_total[1h])) > 4.5`,
      ].join(' or '),
      for: '5m',
      severity: 'warning',
      summary: "The Lease's holder has changed more than four times in one hour.",
      impact: 'Each new leader reads all objects before reconciling, so changes to custom resources are delayed.',
      steps: [
        'Run `kubectl -n sluice-system describe lease sluice-controller`. The output shows an Event for each change, including the replica.',
        'Run `kubectl -n sluice-system get pods -l app.kubernetes.io/component=controller` to check whether the controllers restart, for example because they reach their memory limit.',
        'Check the controller logs for the messages `lost the Lease` and `failed to lead, releasing the Lease`. If there are no errors, renewing the Lease takes longer than ten seconds on the API server (`rest_client_request_duration_seconds`).',
      ],
    },
    {
      name: 'SluiceOutdatedCRDs',
      expr: `max ${by('role')} (sluice_role_impaired{reason="OutdatedCRDs"}) > 0`,
      for: '5m',
      severity: 'critical',
      summary:
        'The controller cannot become the leader because the CustomResourceDefinitions are older than the controller.',
      impact:
        'If there is no controller with the previous version, changes to custom resources are not applied. Events continue to flow.',
      steps: [
        `Run \`${logsOf('controller')}\` to find the message \`role cannot work\`. This message lists the missing fields.`,
        'If Helm installed the CustomResourceDefinitions, upgrade this release, and set `crds.enabled` in its values. If you installed them using `kubectl`, run `kubectl apply --server-side -f crds` with the files of the new version. The controller then becomes the leader automatically.',
      ],
    },
    {
      name: 'SluiceReconcileErrors',
      expr: `sum ${by('controller')} (rate(controller_runtime_reconcile_errors_total[5m])) > 0.1`,
      for: '15m',
      severity: 'warning',
      summary: 'Reconciliations of {{ $labels.controller }} are failing.',
      impact: 'Changes to some objects are not applied. You can use the conditions to find the affected objects.',
      steps: [
        `Run \`${logsOf('controller')}\` to find the message \`failed to reconcile, retrying\`, which contains the object and the error.`,
        'Check the Redis alerts. Check `rest_client_requests_total` for calls that the API server rejects.',
      ],
    },
    {
      name: 'SluiceReconcileStuck',
      expr: `max ${by('name')} (workqueue_longest_running_processor_seconds) > 300`,
      for: '5m',
      severity: 'warning',
      summary: 'A worker of {{ $labels.name }} has been reconciling the same key for more than five minutes.',
      impact: 'Changes to this object are not applied.',
      steps: [
        'Run the query `histogram_quantile(0.99, sum by (le) (rate(rest_client_request_duration_seconds_bucket[5m])))` to check the API server latency. For Redis latency, see SluiceRedisSlow.',
        'If the name is `invitation`, the mail server can take up to 10 minutes to accept an invitation. Check its latency first. If you restart the leader during this time, the invitation may be sent twice.',
        'Restart the leader. This is safe because another replica takes over within seconds.',
      ],
    },
    {
      name: 'SluiceReconcileLate',
      expr: `max ${by('name')} (min_over_time(workqueue_depth[10m])) > 0`,
      for: '10m',
      severity: 'warning',
      summary: 'The queue of {{ $labels.name }} has not been empty for at least ten minutes.',
      impact: 'Changes to these objects are applied late. REST calls that wait for a change respond with 503.',
      steps: [
        'Run the query `max by (name) (workqueue_depth)`. If the value decreases, a new leader or a large change keeps the controller busy. In this case, you only need to wait.',
        'Run the query `sum by (controller, result) (rate(controller_runtime_reconcile_total[5m]))`. If there are many errors, see SluiceReconcileErrors.',
        'Check the CPU usage of the leader, and the API server latency with `rest_client_request_duration_seconds`. If the leader uses all of its CPU, increase its limit. More replicas do not help because only the leader works.',
      ],
    },
    {
      name: 'SluiceSubscriptionRefused',
      expr: `max ${by()} (sluice_controller_subscriptions_not_live{reason="SpecRefused"}) > 0`,
      for: '15m',
      severity: 'warning',
      summary: '{{ $value }} Subscriptions contain a value that the controller cannot apply.',
      impact:
        'Events are not routed to these Subscriptions. The events are kept until their retention period ends. Other Subscriptions are not affected.',
      steps: [
        'Run `kubectl get subscriptions.sluice.dev -A` to find the Subscriptions with the `SpecRefused` reason, and `kubectl describe` to find the value in the message of the `Live` condition. Change the value.',
        'If the CRDs belong to another version, apply the CRDs of this version (see SluiceOutdatedCRDs).',
        'If the message does not contain a value, search the controller log for the message `failed to compile the routes of a Subscription`, and report it as a bug in Sluice.',
      ],
    },
    {
      name: 'SluiceWatchSilent',
      expr: `max ${by()} (sluice_controller_watch_silence_seconds) > 600`,
      for: '5m',
      severity: 'warning',
      summary: 'A watch of the controller has not received any events or bookmarks for ten minutes.',
      impact: 'Changes may be delayed.',
      steps: [
        'Run `kubectl get --raw /readyz` to check that the API server responds. Check the controller log for watch errors.',
      ],
    },
    {
      name: 'SluiceDriftRepaired',
      expr: `sum ${by('what')} (increase(sluice_controller_drift_repaired_total[15m])) > 0`,
      for: '0m',
      severity: 'warning',
      summary: 'Control state in Redis differed from the objects and has been repaired: {{ $labels.what }}.',
      impact: 'For about one minute before the repair, gates or routes did not match the objects.',
      steps: [
        'Run `kubectl get events -A --field-selector source=sluice-controller` to find the affected state.',
        'Find out what caused the difference. For example, someone may have written to this Redis, Redis may have been restored from a backup, or a failover to a delayed replica may have happened.',
      ],
    },
    {
      name: 'SluiceInvitationMailFailing',
      // After several failures, an email is only sent again every 15 minutes.
      expr: [
        `sum ${by()} (increase(sluice_controller_invitation_mails_total{result="failed"}[30m])) > 3`,
        `(sum ${by()} (increase(sluice_controller_invitation_mails_total{result="failed"}[2h])) > 3 unless sum ${by()} (increase(sluice_controller_invitation_mails_total{result="sent"}[2h])) > 0)`,
      ].join(' or '),
      for: '5m',
      severity: 'warning',
      summary: 'The mail server does not accept invitations.',
      impact: 'Invited partners do not receive any emails. The controller retries each email.',
      steps: [
        "Run `kubectl get integrations.sluice.dev -A -o yaml` to find the `InvitationSent` condition, which contains the mail server's response.",
        "Check the value of `SLUICE_SMTP_URL` and check the mail server's log.",
        'The error `ETLS` means that the server in an `smtp://` URL does not support STARTTLS. Use `smtps://` or set `SLUICE_SMTP_ALLOW_PLAIN_TEXT`.',
      ],
    },
  ],
};

export const facade: AlertGroup = {
  name: 'sluice-facade',
  rules: [
    {
      name: 'SluiceFacadeErrors',
      expr: `${share('sluice_facade_request_duration_seconds_count{status=~"5.."}', 'sluice_facade_request_duration_seconds_count', '5m')} > 0.02`,
      for: '10m',
      severity: 'warning',
      summary: 'The facade responds to more than 2 % of all REST calls with a 5xx status.',
      impact:
        'Callers need to repeat these calls. Callers can safely repeat most calls. The REST reference lists the exceptions.',
      steps: [
        'Run the query `sum by (route, status) (rate(sluice_facade_request_duration_seconds_count{status=~"5.."}[5m]))` to find the affected calls.',
        'If this only affects calls that wait for the controller, see SluiceNoLeader. If this affects all calls, check the API server, Redis, and the identity provider.',
        'Check the facade log for the messages `call could not be answered` (503) and `call failed` (500). Both messages contain the error and the `requestId`, which is also returned to the caller as `x-request-id`. Each cause has a stack (`err`) once a minute. If many calls fail, `suppressed` is the number of lines that were left out.',
      ],
    },
    {
      name: 'SluiceFacadeSlow',
      expr: `${p99('sluice_facade_request_duration_seconds', '{route!~".*/pull"}')} > 5`,
      for: '15m',
      severity: 'warning',
      summary: 'More than 1 % of all REST calls take longer than five seconds.',
      impact: 'Callers have to wait longer, or their requests time out.',
      steps: [
        'Run the query `max by (name) (workqueue_depth)` and check SluiceReconcileErrors. Calls that make changes wait until the change is in force.',
        'Check the API server latency with `rest_client_request_duration_seconds`.',
      ],
    },
    {
      name: 'SluiceIssuerUnreachable',
      expr: `sum ${by()} (rate(sluice_facade_refused_tokens_total{reason="undecided"}[5m])) > 0`,
      for: '5m',
      severity: 'critical',
      summary: 'The facade cannot verify access tokens because an identity provider does not respond.',
      impact: 'Users of this identity provider receive a 503 response from the REST API. Events continue to flow.',
      steps: [
        `Run \`${logsOf('facade')}\` to find the message \`failed to read the keys of the issuer\`, which contains the identity provider and the error.`,
        'If the identity provider uses a private CA, set `trust.configMap` in the chart values or set `NODE_EXTRA_CA_CERTS`.',
      ],
    },
  ],
};
