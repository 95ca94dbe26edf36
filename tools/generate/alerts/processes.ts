import { IMPAIRMENTS } from '../../../src/telemetry/role-health.ts';
import { type AlertGroup, by, INSTALLATION, p99, share } from './alert-rule.ts';

/** The roles that every installation needs. The facade is optional. */
const NEEDED_ROLES = ['controller', 'ingress', 'dispatcher'];

/** Selects installations that existed within the last hour. */
const KNOWN = `group ${by()} (last_over_time(sluice_build_info[1h]))`;

const named = (role: string, installations: string) => `label_replace(${installations}, "role", "${role}", "", "")`;

const isMissing = (role: string) =>
  named(role, `${KNOWN} unless on (${INSTALLATION}) (sluice_role_ready{role="${role}"} == 1)`);

/** The facade must have existed within the last hour because installations without it look the same. */
const FACADE = 'sluice_role_ready{role="facade"}';
const FACADE_IS_MISSING = `group ${by('role')} (last_over_time(${FACADE}[1h])) unless on (${INSTALLATION}) (${FACADE} == 1)`;

/** If there is no data, only the matchers (if any) identify the installation. */
const NOTHING = named('any role', 'absent_over_time(sluice_build_info[1h])');

export const processes: AlertGroup = {
  name: 'sluice-processes',
  rules: [
    {
      name: 'SluiceRoleMissing',
      expr: [...NEEDED_ROLES.map(isMissing), NOTHING, FACADE_IS_MISSING].join(' or '),
      for: '5m',
      severity: 'critical',
      summary: 'No replica of {{ $labels.role }} is ready.',
      impact:
        'If ingress is missing, events are rejected. If the dispatcher is missing, events are accepted and kept, but they are not delivered. If the controller is missing, changes to custom resources are not applied, but events continue to flow. If the facade is missing, the REST API is not available.',
      steps: [
        'Run `kubectl -n sluice-system get pods` to check the pods and check their logs.',
        'If a pod is running but not ready, call `GET /readyz` on its ops port to find out the reason.',
        'If a pod restarts, run `kubectl -n sluice-system logs <pod> --previous`. If an environment variable or the root key is the cause, the last line contains the variable. After any other error, the last line contains the message `sluice cannot start`.',
        'For the facade, the alert ends one hour after the last metrics of a replica. If you have removed the facade, ignore the alert until then.',
      ],
    },
    {
      name: 'SluiceReplicaNotReady',
      expr: 'sluice_role_ready == 0',
      for: '15m',
      severity: 'warning',
      summary: 'A replica of {{ $labels.role }} has not been ready for 15 minutes.',
      impact: 'If other replicas of the role are ready, there is no impact.',
      steps: [
        'Run `kubectl -n sluice-system get pods` to find the replica and call `GET /readyz` on its ops port. The response lists all unavailable dependencies, such as Redis or the API server.',
      ],
    },
    {
      name: 'SluiceReplicaDown',
      expr: `up{} == 0 and on (${INSTALLATION}) ${KNOWN}`,
      for: '15m',
      severity: 'warning',
      summary: 'The replica {{ $labels.instance }} has not responded to Prometheus for 15 minutes.',
      impact: 'If other replicas of the role are ready, there is no impact.',
      steps: [
        'Run `kubectl -n sluice-system get pods -o wide` to find the pod with this IP address. If the pod restarts, run `kubectl -n sluice-system logs <pod> --previous`, and `kubectl -n sluice-system describe pod <pod>` to find out whether it has exceeded its memory limit.',
        'If the pod is ready, check that NetworkPolicies allow Prometheus to access its ops port.',
      ],
    },
    {
      name: 'SluiceRoleImpaired',
      expr: `max ${by('role', 'reason')} (sluice_role_impaired) > 0`,
      for: '2m',
      severity: 'critical',
      summary: 'A replica of {{ $labels.role }} cannot work because of {{ $labels.reason }}.',
      impact: 'Other replicas of the role take over its work. If all replicas are affected, the role stops working.',
      steps: [
        'Run `kubectl -n sluice-system logs -l app.kubernetes.io/name=sluice --tail=200` to find the message `role cannot work`, which appears once a minute. This message and `GET /readyz` on the ops port show which environment variable or object you need to change.',
        ...Object.entries(IMPAIRMENTS).map(([reason, meaning]) => `\`${reason}\`: ${meaning}`),
      ],
    },
    {
      name: 'SluiceRootKeyWaiting',
      expr: `max ${by()} (sluice_controller_root_key_missing_replicas) > 0`,
      for: '15m',
      severity: 'warning',
      summary: 'A new root key has been waiting for {{ $value }} replicas for 15 minutes.',
      impact: 'The previous root key remains in use. There is no other impact.',
      steps: [
        'Run `kubectl -n sluice-system logs -l app.kubernetes.io/component=controller --tail=-1` to find the message `the new root key will be used after these replicas have loaded it`, which contains the role, the pod, and the process of each replica.',
        'Search the logs of these replicas for the message `the root keys have changed but cannot be used`. This message shows which file to change.',
        'Check that all pods mount the same Secret as a folder. Kubernetes never updates files that are mounted using `subPath`. See [Rotate the root key](operations.md#rotate-the-root-key).',
      ],
    },
    {
      name: 'SluiceRootKeyMissing',
      expr: `max ${by('use')} (sluice_controller_root_key_uses{key="missing"}) > 0`,
      for: '5m',
      severity: 'critical',
      summary: '{{ $value }} values ({{ $labels.use }}) depend on root keys that the controller does not have.',
      impact:
        'Subscriptions that require one of these keys are not delivered. The events of these Subscriptions are kept until the retention period ends.',
      steps: [
        "Run `kubectl get subscriptions.sluice.dev -A` to find the subscriptions. Their reason is `SigningKeyMissing` or `HeaderNotReadable`, and the message of the first one contains the root key's id.",
        'If the oldest root key was retired too early, remove `root.key.retired` from the Secret. If a root key was removed, restore it from your backup using the same file name. The subscriptions then resume automatically.',
        "If you don't have a backup, partners need to rotate their signing secrets and set their header values again.",
      ],
    },
    {
      name: 'SluiceEventLoopBlocked',
      expr: `nodejs_eventloop_lag_p99_seconds > 0.5 and on (${INSTALLATION}, instance) sluice_build_info`,
      for: '10m',
      severity: 'warning',
      summary: 'The event loop of a process is blocked for more than half a second.',
      impact:
        'All work of this process is delayed. If the delay is longer than one second, the facade responds with 503.',
      steps: [
        'Run the query `rate(process_cpu_seconds_total[5m])`. If the process is using almost one core, add more replicas of the role or increase its CPU limit.',
        'Check `nodejs_gc_duration_seconds_sum` and the heap size. If the heap size is close to its limit, increase the memory limit of the process.',
      ],
    },
    {
      name: 'SluiceCertificateExpiring',
      expr: `min ${by('use')} (sluice_certificate_expiry_timestamp_seconds) - time() < 7 * 86400`,
      for: '15m',
      severity: 'warning',
      summary: 'The certificate for {{ $labels.use }} expires in less than seven days.',
      impact:
        'When the certificate has expired, connections fail. Without Redis, events are rejected and are not delivered. Without the mail server, invitations are not sent. Clients can no longer connect to ingress and the facade.',
      steps: [
        'Run `kubectl -n sluice-system get secrets --field-selector type=kubernetes.io/tls` to find the certificate unless it belongs to Redis or to the mail server.',
        'If the certificate is issued by cert-manager, run `kubectl -n sluice-system describe certificates` to find out why it has not been renewed.',
        'If it is not issued by cert-manager, replace the certificate yourself. Sluice automatically reads its own certificates again within a few minutes. After Redis or the mail server has started using a new certificate, it can take up to ten minutes until the alert is resolved.',
      ],
    },
    {
      name: 'SluiceCertificateRejected',
      expr: `max ${by('use')} (sluice_certificate_rejected) > 0`,
      for: '5m',
      severity: 'warning',
      summary:
        'The files of the certificate for {{ $labels.use }} cannot be used, so the previous certificate is still in use.',
      impact:
        'There is no impact until the previous certificate expires. If the process is restarted, it fails to start.',
      steps: [
        'Run `kubectl -n sluice-system get secrets --field-selector type=kubernetes.io/tls` to find the Secret and check its `tls.crt` and `tls.key` fields. The key must belong to the first certificate, which must not be expired.',
        'Check the log for the messages `failed to load the new certificate, using the previous one` and `failed to load Redis files, using the previous ones`. These messages contain the reason.',
      ],
    },
    {
      name: 'SluiceVersionsDiffer',
      expr: `count ${by()} (count ${by('version')} (sluice_build_info)) > 1`,
      for: '60m',
      severity: 'info',
      summary: 'Processes with different versions have been running for one hour.',
      impact: 'There is no impact during an upgrade because adjacent versions are compatible.',
      steps: [
        'Run `kubectl -n sluice-system rollout status deployment` to check the status of the upgrade. Complete the upgrade or roll it back.',
      ],
    },
  ],
};

export const redis: AlertGroup = {
  name: 'sluice-redis',
  rules: [
    {
      name: 'SluiceRedisDisconnected',
      expr: 'sluice_redis_connected == 0',
      for: '1m',
      severity: 'critical',
      summary: 'A process is not connected to Redis.',
      impact:
        'If Redis is unavailable, ingress responds with 503 and dispatchers do not deliver events. Events that ingress accepted with 202 are stored on disk. Delivery resumes automatically.',
      steps: [
        "On the process's host, run `redis-cli PING` with the address from `SLUICE_REDIS_URL` to check that Redis responds. Check the Redis log.",
        'With `appendfsync always`, Redis stops if the disk is full. Free up disk space, and start Redis again.',
        "You don't need to restart Sluice.",
      ],
    },
    {
      name: 'SluiceClockOffset',
      expr: `max ${by('instance')} (abs(sluice_redis_clock_offset_seconds)) > 60`,
      for: '5m',
      severity: 'warning',
      summary: 'The clock of {{ $labels.instance }} and the Redis clock differ by more than one minute.',
      impact:
        'Deliveries are signed with the clock of the dispatcher, and receivers usually reject timestamps that are more than five minutes old. The facade uses its clock to check whether an access token is valid. The time of an event, retries, and retention depend on the Redis clock. While the clocks of Redis and of a dispatcher differ by more than an hour, this dispatcher does not remove expired events.',
      steps: [
        'Run the query `sort_desc(abs(sluice_redis_clock_offset_seconds))`. If the result is about the same for all processes, the Redis clock is wrong. If it differs, the clock of this process is wrong.',
        'Check that a time service, such as chrony, is running on the machine with the wrong clock. After that, the alert is resolved automatically.',
      ],
    },
    {
      name: 'SluiceRedisErrors',
      expr: `${share('sluice_redis_command_errors_total', 'sluice_redis_commands_total', '5m')} > 0.01`,
      // The errors of a short failover remain in the window for five minutes.
      for: '7m',
      severity: 'warning',
      summary: 'More than 1 % of the Redis commands are failing.',
      impact: 'Failed work is delayed and retried automatically. Ingress may respond with 503.',
      steps: [
        'Run the query `sum by (reason) (rate(sluice_redis_command_errors_total[5m]))` to find the reason.',
        'For the `memory` reason, see SluiceRedisMemoryHigh. For the `timeout` reason, see SluiceRedisSlow. The `unavailable` reason indicates a failover or a restart. The `refused` reason indicates a bug in Sluice or an unsupported Redis version. The log contains the error.',
      ],
    },
    {
      name: 'SluiceRedisSlow',
      expr: `${p99('sluice_redis_command_duration_seconds')} > 0.1`,
      for: '10m',
      severity: 'warning',
      summary: 'More than 1 % of the Redis commands take longer than 100 ms.',
      impact: 'Accepting and delivering an event requires several Redis commands, so events are delayed.',
      steps: [
        'Run `redis-cli SLOWLOG GET` and `redis-cli --latency`. The output also includes commands from other users of the same Redis.',
        'With `appendfsync always`, each write waits for the disk, so check the disk latency.',
        'Redis uses a single CPU core. If its CPU usage is close to 100 %, use a Redis Cluster to distribute the streams to several nodes. Each stream is still stored on a single node.',
      ],
    },
    {
      name: 'SluiceRedisMemoryHigh',
      expr: `max ${by()} (sluice_redis_memory_used_ratio) > 0.75`,
      for: '10m',
      severity: 'warning',
      summary: 'Redis uses more than 75 % of its memory.',
      impact:
        'Accounts that store more than their share of the memory receive a 429 `storage_pressure` response, starting with the largest accounts. When the usage reaches 82 %, ingress rejects all events until the usage has dropped below 77 %. Stored events are still delivered.',
      steps: [
        'Run the query `max(sluice_dispatcher_open_deliveries)` to check whether the number of open deliveries increases. Delivered events continue to use memory until their retention period ends.',
        'Increase the Redis memory (`maxmemory`), decrease `spec.retention` for the largest streams, or decrease the value of `SLUICE_QUEUE_MAX_BYTES`.',
      ],
    },
    {
      name: 'SluiceRedisMemoryUnlimited',
      expr: `min ${by()} (sluice_redis_memory_max_bytes) == 0`,
      for: '60m',
      severity: 'warning',
      summary: 'At least one Redis master does not have a memory limit.',
      impact:
        'Ingress accepts events until the machine or the container is out of memory and Redis is killed. When Redis restarts, it loads the same events and can be killed again.',
      steps: [
        'Run `redis-cli CONFIG GET maxmemory` on every master to find those with 0.',
        'Run `redis-cli CONFIG SET maxmemory <bytes>` on these masters and their replicas, with 75 % of the memory of the machine or the container, and add this setting to `redis.conf`. The remaining memory is required for rewriting the append-only file, for replicas, and for clients.',
      ],
    },
    {
      name: 'SluiceRedisMemoryFull',
      // Below 82 %, ingress continues to reject events until the usage has dropped below 77 %.
      expr: [
        `max ${by()} (sluice_redis_memory_used_ratio) > 0.82`,
        `sum ${by()} (rate(sluice_ingress_memory_refusals_total{reason="full"}[5m])) > 0`,
      ].join(' or '),
      for: '1m',
      severity: 'critical',
      summary: 'Ingress does not accept any events because Redis has used 82 % of its memory.',
      impact:
        'Producers receive a 503 response and need to retry. Stored events are routed and delivered using the remaining memory.',
      steps: [
        'Run `redis-cli INFO memory`, and increase `maxmemory` with `redis-cli CONFIG SET maxmemory <bytes>`. If the machine does not have enough memory, decrease the retention period of your streams.',
        'Keep `maxmemory-policy noeviction`. With any other policy, Redis removes gates and events when its memory is full.',
      ],
    },
  ],
};
