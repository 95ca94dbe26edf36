/** Series in promtool notation, with their values for each minute. */
export type Input = Readonly<Record<string, string>>;

/** The series for which an alert must fire, and for which it must not fire. Each of them runs for two hours. */
export interface AlertCase {
  readonly firing: Input;
  /** Series which are as close to the threshold as possible. */
  readonly silent: Input;
}

const ready = (role: string, instance = 'a') => `sluice_role_ready{role="${role}",instance="${instance}"}`;
const allReady: Input = {
  ...Object.fromEntries(['controller', 'ingress', 'dispatcher', 'facade'].map(role => [ready(role), '1x120'])),
  'sluice_build_info{instance="a",version="1"}': '1x120',
};
const leader = (instance: string) => `leader_election_master_status{name="sluice-controller",instance="${instance}"}`;
const started = (instance: string) => `sluice_controller_term_started{instance="${instance}"}`;

/**
 * Returns a histogram with this number of observations per minute within `le`, and one in ten above it for `slower`.
 */
function histogram(name: string, le: string, labels: string, slowOfTen: number): Input {
  const more = labels === '' ? '' : `,${labels}`;
  return {
    [`${name}_bucket{le="${le}"${more}}`]: `0+${(10 - slowOfTen) * 60}x120`,
    [`${name}_bucket{le="3600"${more}}`]: '0+600x120',
    [`${name}_bucket{le="+Inf"${more}}`]: '0+600x120',
  };
}

const slow = (name: string, le: string, labels = ''): AlertCase => ({
  firing: histogram(name, le, labels, 1),
  silent: histogram(name, le, labels, 0),
});

/** Returns a gauge that does not change. */
const stays = (series: string, firing: number, silent: number): AlertCase => ({
  firing: { [series]: `${firing}x120` },
  silent: { [series]: `${silent}x120` },
});

/** Repeats a series for two hours. */
const cycle = (values: string) => Array.from({ length: 7 }, () => values).join(' ');

/** Returns a counter that increases by this number per minute. */
const grows = (series: string, firing: number, silent: number): AlertCase => ({
  firing: { [series]: `0+${firing}x120` },
  silent: { [series]: `0+${silent}x120` },
});

/** Returns two counters which increase by a total of 1,000 per minute. */
const share = (part: string, rest: string, firing: number, silent: number): AlertCase => ({
  firing: { [part]: `0+${firing}x120`, [rest]: `0+${1_000 - firing}x120` },
  silent: { [part]: `0+${silent}x120`, [rest]: `0+${1_000 - silent}x120` },
});

export const ALERT_CASES: Readonly<Record<string, AlertCase>> = {
  SluiceRoleMissing: {
    firing: { ...allReady, [ready('dispatcher')]: '0x120' },
    silent: { ...allReady, [ready('dispatcher', 'b')]: '0x120' },
  },
  SluiceReplicaNotReady: {
    firing: { [ready('dispatcher')]: '0x120' },
    silent: { [ready('dispatcher')]: '0x14 1x106' },
  },
  SluiceReplicaDown: {
    firing: { ...allReady, 'up{instance="b"}': '0x120' },
    silent: { ...allReady, 'up{instance="a"}': '1x120' },
  },
  SluiceRoleImpaired: {
    firing: { 'sluice_role_impaired{role="dispatcher",reason="RedisUnavailable",instance="a"}': '1x120' },
    silent: { 'sluice_role_impaired{role="dispatcher",reason="RedisUnavailable",instance="a"}': '0x120' },
  },
  SluiceAdmissionPoliciesMissing: {
    firing: { 'sluice_admission_policies_missing{role="facade",instance="a"}': '1x120' },
    silent: { 'sluice_admission_policies_missing{role="facade",instance="a"}': '0x120' },
  },
  // Time starts at 0. At the end of the case, two hours have passed.
  SluiceCertificateExpiring: stays('sluice_certificate_expiry_timestamp_seconds{use="redis"}', 600_000, 620_000),
  SluiceCertificateRejected: stays('sluice_certificate_rejected{use="ingress"}', 1, 0),
  SluiceRootKeyWaiting: stays('sluice_controller_root_key_missing_replicas{instance="a"}', 1, 0),
  SluiceRootKeyMissing: {
    firing: { 'sluice_controller_root_key_uses{key="missing",use="signing",instance="a"}': '1x120' },
    silent: {
      'sluice_controller_root_key_uses{key="missing",use="signing",instance="a"}': '0x120',
      'sluice_controller_root_key_uses{key="root.key",use="signing",instance="a"}': '7x120',
    },
  },
  SluiceEventLoopBlocked: {
    firing: {
      'nodejs_eventloop_lag_p99_seconds{instance="a"}': '0.6x120',
      'sluice_build_info{instance="a",version="1"}': '1x120',
    },
    silent: {
      'nodejs_eventloop_lag_p99_seconds{instance="a"}': '0.4x120',
      'sluice_build_info{instance="a",version="1"}': '1x120',
      // The series of another program.
      'nodejs_eventloop_lag_p99_seconds{instance="b"}': '9x120',
    },
  },
  SluiceVersionsDiffer: {
    firing: {
      'sluice_build_info{instance="a",version="1"}': '1x120',
      'sluice_build_info{instance="b",version="2"}': '1x120',
    },
    silent: {
      'sluice_build_info{instance="a",version="1"}': '1x120',
      'sluice_build_info{instance="b",version="1"}': '1x120',
    },
  },
  SluiceRedisDisconnected: stays('sluice_redis_connected{instance="a"}', 0, 1),
  SluiceRedisErrors: {
    firing: {
      'sluice_redis_command_errors_total{reason="timeout"}': '0+11x120',
      sluice_redis_commands_total: '0+1000x120',
    },
    silent: {
      'sluice_redis_command_errors_total{reason="timeout"}': '0+9x120',
      sluice_redis_commands_total: '0+1000x120',
    },
  },
  SluiceRedisSlow: slow('sluice_redis_command_duration_seconds', '0.1'),
  SluiceClockOffset: stays('sluice_redis_clock_offset_seconds{instance="a"}', -61, 60),
  SluiceRedisMemoryHigh: stays('sluice_redis_memory_used_ratio', 0.76, 0.74),
  SluiceRedisMemoryUnlimited: stays('sluice_redis_memory_max_bytes', 0, 1),
  SluiceRedisMemoryFull: stays('sluice_redis_memory_used_ratio', 0.83, 0.81),
  SluiceIngressErrors: share(
    'sluice_ingress_requests_total{code="503"}',
    'sluice_ingress_requests_total{code="202"}',
    11,
    9,
  ),
  SluiceIngressSlow: slow('sluice_ingress_request_duration_seconds', '1'),
  SluiceQueueFull: grows('sluice_ingress_events_total{result="full"}', 1, 0),
  SluiceStoragePressure: {
    firing: { 'sluice_ingress_memory_refusals_total{reason="share"}': '0+1x120' },
    silent: {
      'sluice_ingress_memory_refusals_total{reason="share"}': '0+0x120',
      'sluice_ingress_memory_refusals_total{reason="full"}': '0+1x120',
    },
  },
  SluiceRoutingStuck: stays('sluice_work_overdue_seconds{index="queues"}', 31, 29),
  SluiceControlDataMissing: {
    firing: { 'sluice_dispatcher_parts_held_seconds{cause="control_data"}': '31x120' },
    silent: {
      'sluice_dispatcher_parts_held_seconds{cause="control_data"}': '29x120',
      'sluice_dispatcher_parts_held_seconds{cause="catching_up"}': '31x120',
    },
  },
  SluiceRoutingLate: {
    firing: { 'sluice_dispatcher_parts_held_seconds{cause="wide_event"}': '61x120' },
    silent: {
      'sluice_dispatcher_parts_held_seconds{cause="catching_up"}': '59x120',
      // There is a separate alert for accounts that have used up their tokens.
      'sluice_dispatcher_parts_held_seconds{cause="tokens"}': '61x120',
    },
  },
  SluiceAccountsOutOfTokens: stays('sluice_controller_accounts_short', 1, 0),
  SluiceDeliveryStuck: stays('sluice_work_overdue_seconds{index="parts"}', 31, 29),
  SluiceDispatcherFull: stays('sluice_dispatcher_claims{instance="a"}', 3_601, 3_456),
  SluiceClaimsLost: {
    firing: { 'sluice_dispatcher_returned_claims_total{cause="lost"}': '0+13x120' },
    silent: {
      'sluice_dispatcher_returned_claims_total{cause="lost"}': '0+11x120',
      'sluice_dispatcher_returned_claims_total{cause="late"}': '0+100x120',
    },
  },
  SluiceReplaysStuck: stays('sluice_work_overdue_seconds{index="replays"}', 301, 299),
  SluiceDispatcherFailing: grows('sluice_dispatcher_failures_total', 13, 11),
  SluiceAttemptsFailing: share(
    'sluice_dispatcher_attempts_total{outcome="failed",reason="http_5xx"}',
    'sluice_dispatcher_attempts_total{outcome="delivered",reason="http_2xx"}',
    510,
    490,
  ),
  SluiceEventsExpired: {
    firing: { sluice_dispatcher_expired_total: '0+1x120' },
    silent: {
      sluice_dispatcher_expired_total: '5x120',
      'sluice_dispatcher_not_routed_total{reason="expired"}': '5x120',
    },
  },
  SluiceDeadLetters: grows('sluice_dispatcher_events_total{result="dead"}', 1, 0),
  SluiceEndpointsGone: grows('sluice_dispatcher_events_total{result="gone"}', 1, 0),
  SluiceBacklogAtRisk: stays('sluice_controller_backlogs_at_risk', 1, 0),
  SluiceBacklogGrowing: {
    firing: { sluice_dispatcher_open_deliveries: '20000+10x120' },
    silent: { sluice_dispatcher_open_deliveries: '20000-10x120' },
  },
  SluiceNoLeader: {
    firing: { [leader('a')]: '0x120', [leader('b')]: '0x120' },
    silent: { [leader('a')]: '1x120', [leader('b')]: '0x120' },
  },
  SluiceLeaderIdle: {
    firing: {
      // The Lease changes hands every few minutes, and is sometimes free.
      [leader('a')]: '1x3 0x3 1x3 0x3 1x107',
      [leader('b')]: '0x4 1x2 0x4 1x2 0x107',
      [started('a')]: '0x120',
      [started('b')]: '0x120',
    },
    silent: {
      [leader('a')]: '1x120',
      [leader('b')]: '0x120',
      [started('a')]: '0x1 1x119',
      [started('b')]: '0x120',
    },
  },
  SluiceTwoLeaders: {
    firing: { [leader('a')]: '1x120', [leader('b')]: '1x120' },
    silent: { [leader('a')]: '1x120', [leader('b')]: '0x120' },
  },
  SluiceLeaderChangesOften: {
    // Every ten minutes, as seen by two replicas.
    firing: { [leader('a')]: cycle('1x9 0x9'), [leader('b')]: cycle('0x9 1x9') },
    // Every twenty minutes.
    silent: {
      'sluice_controller_terms_total{instance="a"}': Array.from({ length: 9 }, (_, n) => `${n}x14`).join(' '),
      [leader('a')]: cycle('1x19 0x19'),
      [leader('b')]: cycle('0x19 1x19'),
    },
  },
  SluiceOutdatedCRDs: {
    firing: { 'sluice_role_impaired{role="controller",reason="OutdatedCRDs",instance="a"}': '1x120' },
    silent: {
      'sluice_role_impaired{role="controller",reason="OutdatedCRDs",instance="a"}': '0x120',
      'sluice_role_impaired{role="controller",reason="RedisUnavailable",instance="a"}': '1x120',
    },
  },
  SluiceReconcileErrors: grows('controller_runtime_reconcile_errors_total{controller="block"}', 7, 5),
  SluiceReconcileStuck: stays('workqueue_longest_running_processor_seconds{name="block"}', 301, 299),
  SluiceReconcileLate: {
    // A new leader takes over a queue that is never empty.
    firing: {
      'workqueue_depth{name="block",instance="a"}': '5x60 0x60',
      'workqueue_depth{name="block",instance="b"}': '_x60 900-5x60',
    },
    // A busy leader, which is sometimes done.
    silent: { 'workqueue_depth{name="block",instance="a"}': '100x111 0 100x7' },
  },
  SluiceSubscriptionRefused: {
    firing: { 'sluice_controller_subscriptions_not_live{reason="SpecRefused",instance="a"}': '1x120' },
    silent: {
      'sluice_controller_subscriptions_not_live{reason="SpecRefused",instance="a"}': '0x120',
      'sluice_controller_subscriptions_not_live{reason="Blocked",instance="a"}': '1x120',
    },
  },
  SluiceWatchSilent: stays('sluice_controller_watch_silence_seconds', 601, 599),
  SluiceDriftRepaired: grows('sluice_controller_drift_repaired_total{what="queue"}', 1, 0),
  SluiceInvitationMailFailing: {
    firing: { 'sluice_controller_invitation_mails_total{result="failed"}': '0+1x120' },
    silent: {
      'sluice_controller_invitation_mails_total{result="failed"}': '0+0.1x120',
      'sluice_controller_invitation_mails_total{result="sent"}': '0+0.1x120',
    },
  },
  SluiceFacadeErrors: share(
    'sluice_facade_request_duration_seconds_count{route="GET /waas",status="503"}',
    'sluice_facade_request_duration_seconds_count{route="GET /waas",status="200"}',
    21,
    19,
  ),
  SluiceFacadeSlow: {
    ...slow('sluice_facade_request_duration_seconds', '5', 'route="GET /waas",status="200"'),
    // Long polls are slow by design.
    silent: histogram('sluice_facade_request_duration_seconds', '5', 'route="POST /waas/pull",status="200"', 5),
  },
  SluiceIssuerUnreachable: grows('sluice_facade_refused_tokens_total{reason="undecided"}', 1, 0),
};
