import { type AlertGroup, p99, share } from './alert-rule.ts';

export const control: AlertGroup = {
  name: 'sluice-control',
  rules: [
    {
      name: 'SluiceNoLeader',
      expr: 'max(leader_election_master_status{name="sluice-controller"}) == 0',
      for: '2m',
      severity: 'critical',
      summary: 'No controller leads.',
      impact:
        'Changes of custom resources are not applied. REST calls that wait for that answer 503. Events still flow.',
      steps: [
        '`kubectl -n sluice-system get lease sluice-controller -o yaml` shows the holder.',
        'The log line `role cannot work` of the controllers gives the reason (`LeaseUnavailable`): the API server, rights on the Lease, or a missing namespace.',
      ],
    },
    {
      name: 'SluiceLeaderIdle',
      expr: 'max(sluice_controller_term_started) == 0 and max(max_over_time(leader_election_master_status{name="sluice-controller"}[2m])) == 1',
      for: '2m',
      severity: 'critical',
      summary: 'A controller holds the Lease but does no work.',
      impact:
        'Changes of custom resources are not applied. REST calls that wait for that answer 503. Events still flow. Deletions still finish within about two minutes.',
      steps: [
        'The log line `role cannot work` of the controllers gives the reason: `TermNotStarted` or `ForeignRedis`. So does `GET /readyz` on their ops port.',
        '`kubectl -n sluice-system describe lease sluice-controller` shows an Event for each replica that released the Lease after a minute of failures.',
        'Check the alerts of Redis. Check that the API server answers: before it works, the controller lists all kinds and reads the namespace `kube-system`.',
      ],
    },
    {
      name: 'SluiceTwoLeaders',
      expr: 'sum(leader_election_master_status{name="sluice-controller"}) > 1',
      for: '2m',
      severity: 'critical',
      summary: 'More than one controller claims to be the leader.',
      impact: 'Redis refuses the writes of the older leader. Two clusters that share one Redis overwrite each other.',
      steps: [
        'Check whether two installations share a Redis or the namespace of the Lease. Each installation needs its own.',
      ],
    },
    {
      name: 'SluiceReconcileErrors',
      expr: 'sum by (controller) (rate(controller_runtime_reconcile_errors_total[5m])) > 0.1',
      for: '15m',
      severity: 'warning',
      summary: 'Reconciliations of {{ $labels.controller }} fail.',
      impact: 'Changes of some objects are not applied. Their conditions show which.',
      steps: [
        'The log line `cannot reconcile; retrying` of the leader names the object and the error.',
        'Check the alerts of Redis. Check `rest_client_requests_total` for calls that the API server refuses.',
      ],
    },
    {
      name: 'SluiceReconcileStuck',
      expr: 'max by (name) (workqueue_longest_running_processor_seconds) > 300',
      for: '5m',
      severity: 'warning',
      summary: 'A worker of {{ $labels.name }} has been reconciling one key for more than five minutes.',
      impact: 'Changes of that object are not applied.',
      steps: [
        'Check the latency of Redis and of the API server.',
        'Restart the leader. This is safe: another replica takes over within seconds.',
      ],
    },
    {
      name: 'SluiceWatchSilent',
      expr: 'max(sluice_controller_watch_silence_seconds) > 600',
      for: '5m',
      severity: 'warning',
      summary: 'A watch of the controller has received nothing for ten minutes, not even a bookmark.',
      impact: 'The controller may see changes late.',
      steps: ['Check that the API server answers. Check the log of the controller for its watches.'],
    },
    {
      name: 'SluiceDriftRepaired',
      expr: 'sum by (what) (increase(sluice_controller_drift_repaired_total[15m])) > 0',
      for: '0m',
      severity: 'warning',
      summary: 'Control state in Redis differed from the last written state and was repaired: {{ $labels.what }}.',
      impact: 'For about a minute before the repair, gates or routes did not match the objects.',
      steps: [
        'Find the cause: another program or person wrote to this Redis, it was restored from a backup, or it failed over to a replica that lagged.',
        'The Events of the controller name the state: `kubectl get events -A --field-selector source=sluice-controller`.',
      ],
    },
    {
      name: 'SluiceInvitationMailFailing',
      expr: 'sum(increase(sluice_controller_invitation_mails_total{result="failed"}[30m])) > 3',
      for: '5m',
      severity: 'warning',
      summary: 'The mail server does not accept invitations.',
      impact: 'Invited partners get no mail. Each mail is retried.',
      steps: [
        'The condition `InvitationSent` of the Integrations has the answer of the mail server.',
        'Check `SLUICE_SMTP_URL` and the log of the mail server.',
        '`ETLS` means that the server of `smtp://` offers no STARTTLS. Use `smtps://`, or set `SLUICE_SMTP_ALLOW_PLAIN_TEXT`.',
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
      summary: 'The facade answers more than 2 % of the REST calls with 5xx.',
      impact: 'Callers must repeat these calls, which is safe.',
      steps: [
        '`sum by (route, status) (rate(sluice_facade_request_duration_seconds_count{status=~"5.."}[5m]))` shows the calls.',
        'If only calls that wait for the controller fail, see SluiceNoLeader. If all calls fail, check the API server, Redis and the identity provider.',
        'The log line `call failed` of the facade has the error and the `requestId` that the caller got as `x-request-id`.',
      ],
    },
    {
      name: 'SluiceFacadeSlow',
      expr: `${p99('sluice_facade_request_duration_seconds', '{route!~".*/pull"}')} > 5`,
      for: '15m',
      severity: 'warning',
      summary: '1 % of the REST calls take more than five seconds.',
      impact: 'Callers wait, or time out.',
      steps: [
        'Calls that change something wait until the change is in force: see SluiceReconcileErrors and `workqueue_depth`.',
        'Check the latency of the API server (`rest_client_request_duration_seconds`).',
      ],
    },
    {
      name: 'SluiceIssuerUnreachable',
      expr: 'sum(rate(sluice_facade_refused_tokens_total{reason="undecided"}[5m])) > 0',
      for: '5m',
      severity: 'critical',
      summary: 'The facade cannot verify access tokens: an identity provider does not answer.',
      impact: 'Its users get 503 from REST. Events still flow.',
      steps: [
        'The log line `issuer cannot be read` of the facade names the identity provider and the error.',
        'For a private CA, set `NODE_EXTRA_CA_CERTS`.',
      ],
    },
  ],
};
