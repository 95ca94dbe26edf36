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
        'Changes of custom resources do not come into force; calls of REST that wait for that answer 503. Events flow on.',
      steps: [
        '`kubectl -n sluice-system get lease sluice-controller -o yaml` says who holds it.',
        'The log line `role cannot work` of the controllers says why they cannot have it (`LeaseUnavailable`): the API server, rights on the Lease, or a namespace that does not exist.',
      ],
    },
    {
      name: 'SluiceLeaderIdle',
      expr: 'max(sluice_controller_term_started) == 0 and max(max_over_time(leader_election_master_status{name="sluice-controller"}[2m])) == 1',
      for: '2m',
      severity: 'critical',
      summary: 'A controller holds the Lease and works on nothing.',
      impact:
        'Changes of custom resources do not come into force; calls of REST that wait for that answer 503. Events flow on. Deleted objects are gone within about two minutes.',
      steps: [
        'The log line `role cannot work` of the controllers names the reason: `TermNotStarted`, `ForeignRedis`. So does `GET /readyz` on their ops port.',
        '`kubectl -n sluice-system describe lease sluice-controller` shows an Event for each replica that released the Lease after a minute of failures.',
        'See the alerts of Redis. See whether the API server answers: the controller lists all kinds and reads the namespace `kube-system` before it works.',
      ],
    },
    {
      name: 'SluiceTwoLeaders',
      expr: 'sum(leader_election_master_status{name="sluice-controller"}) > 1',
      for: '2m',
      severity: 'critical',
      summary: 'More than one controller says that it leads.',
      impact: 'Writes of the older one are refused by Redis; two clusters on one Redis overwrite each other.',
      steps: ['See whether two installations share a namespace for the Lease or a Redis: each needs its own.'],
    },
    {
      name: 'SluiceReconcileErrors',
      expr: 'sum by (controller) (rate(controller_runtime_reconcile_errors_total[5m])) > 0.1',
      for: '15m',
      severity: 'warning',
      summary: 'Reconciliations of {{ $labels.controller }} fail.',
      impact: 'Some objects do not come into force; their conditions say which.',
      steps: [
        '`reconciling failed` in the log of the leader names the objects and the error.',
        'See the alerts of Redis, and `rest_client_requests_total` for calls to the API server that are refused.',
      ],
    },
    {
      name: 'SluiceReconcileStuck',
      expr: 'max by (name) (workqueue_longest_running_processor_seconds) > 300',
      for: '5m',
      severity: 'warning',
      summary: 'A worker of {{ $labels.name }} has been at one key for more than five minutes.',
      impact: 'That object does not come into force.',
      steps: [
        'See the latency of Redis and of the API server.',
        'Restarting the leader is safe: another takes over within seconds.',
      ],
    },
    {
      name: 'SluiceWatchSilent',
      expr: 'max(sluice_controller_watch_silence_seconds) > 600',
      for: '5m',
      severity: 'warning',
      summary: 'A watch of the controller has heard nothing for ten minutes, not even a bookmark.',
      impact: 'Changes may be seen late.',
      steps: ['See whether the API server answers, and the log of the controller for its watches.'],
    },
    {
      name: 'SluiceDriftRepaired',
      expr: 'sum by (what) (increase(sluice_controller_drift_repaired_total[15m])) > 0',
      for: '0m',
      severity: 'warning',
      summary: 'Control state in Redis was not what had been written, and was repaired: {{ $labels.what }}.',
      impact: 'Until then, for about a minute, gates or routes were others than the objects say.',
      steps: [
        'Somebody or something else wrote to this Redis, it was restored from a backup, or it failed over to a replica that was behind.',
        'Events of the controller say which state it was: `kubectl get events -A --field-selector source=sluice-controller`.',
      ],
    },
    {
      name: 'SluiceInvitationMailFailing',
      expr: 'sum(increase(sluice_controller_invitation_mails_total{result="failed"}[30m])) > 3',
      for: '5m',
      severity: 'warning',
      summary: 'The mail server does not take invitations.',
      impact: 'Partners that were invited do not hear of it; each mail is tried again.',
      steps: [
        '`InvitationSent` of the Integrations says what the mail server answered.',
        'Check `SLUICE_SMTP_URL` and what the mail server logs.',
        '`ETLS`: the server of `smtp://` offers no STARTTLS. Use `smtps://`, or set `SLUICE_SMTP_ALLOW_PLAIN_TEXT`.',
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
      summary: 'More than one in fifty calls of REST is answered with 5xx.',
      impact: 'Callers have to repeat them, which is safe.',
      steps: [
        '`sum by (route, status) (rate(sluice_facade_request_duration_seconds_count{status=~"5.."}[5m]))` says which.',
        'All that wait for the controller: see SluiceNoLeader. All: see the API server, Redis and the identity provider.',
        '`call failed` in the log of the facade has the error and the `requestId` that the caller got as `x-request-id`.',
      ],
    },
    {
      name: 'SluiceFacadeSlow',
      expr: `${p99('sluice_facade_request_duration_seconds', '{route!~".*/pull"}')} > 5`,
      for: '15m',
      severity: 'warning',
      summary: 'One in a hundred calls of REST takes more than five seconds.',
      impact: 'Callers wait, or give up.',
      steps: [
        'Changes wait until they are in force: see SluiceReconcileErrors and `workqueue_depth`.',
        'See the latency of the API server (`rest_client_request_duration_seconds`).',
      ],
    },
    {
      name: 'SluiceIssuerUnreachable',
      expr: 'sum(rate(sluice_facade_refused_tokens_total{reason="undecided"}[5m])) > 0',
      for: '5m',
      severity: 'critical',
      summary: 'Tokens cannot be judged: an identity provider does not answer.',
      impact: 'Its users get 503 from REST. Events flow on.',
      steps: [
        '`issuer cannot be read` in the log of the facade names it and the error.',
        'A private CA needs `NODE_EXTRA_CA_CERTS`.',
      ],
    },
  ],
};
