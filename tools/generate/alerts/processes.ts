import { IMPAIRMENTS } from '../../../src/telemetry/role-health.ts';
import { type AlertGroup, by, INSTALLATION, p99, share } from './alert-rule.ts';

/** Every installation needs these roles; the facade is optional. */
const NEEDED_ROLES = ['controller', 'ingress', 'dispatcher'];

/** Installations that were there in the last hour. */
const KNOWN = `group ${by()} (last_over_time(sluice_build_info[1h]))`;

const named = (role: string, installations: string) => `label_replace(${installations}, "role", "${role}", "", "")`;

const isMissing = (role: string) =>
  named(role, `${KNOWN} unless on (${INSTALLATION}) (sluice_role_ready{role="${role}"} == 1)`);

/** Nothing at all: only the matchers, if there are any, name the installation. */
const NOTHING = named('any role', 'absent_over_time(sluice_build_info[1h])');

export const processes: AlertGroup = {
  name: 'sluice-processes',
  rules: [
    {
      name: 'SluiceRoleMissing',
      expr: `${[...NEEDED_ROLES.map(isMissing), NOTHING].join(' or ')} or max ${by('role')} (sluice_role_ready{role="facade"}) == 0`,
      for: '5m',
      severity: 'critical',
      summary: 'No replica of {{ $labels.role }} is ready.',
      impact:
        'If there is no ingress, events will be rejected. If there is no dispatcher, events are accepted and kept, but they are not delivered. If there is no controller, changes to custom resources are not applied, but events will continue to flow. If there is no facade, the REST API is not available.',
      steps: [
        'Run `kubectl -n sluice-system get pods` to check the pods, and check their logs.',
        'If a pod is running but is not ready, call `GET /readyz` on its ops port to find the reason.',
        'Check the log for the message `sluice cannot start`. It shows whether the cause is a variable, the root key, or the [settings of Redis](configuration.md#redis).',
      ],
    },
    {
      name: 'SluiceReplicaNotReady',
      expr: 'sluice_role_ready == 0',
      for: '15m',
      severity: 'warning',
      summary: 'A replica of {{ $labels.role }} has not been ready for 15 minutes.',
      impact: 'There is no impact if other replicas of the role are ready.',
      steps: [
        'Run `kubectl -n sluice-system get pods` to find the replica, and call `GET /readyz` on its ops port. It lists the dependencies that are not available, such as Redis or the API server.',
      ],
    },
    {
      name: 'SluiceRoleImpaired',
      expr: `max ${by('role', 'reason')} (sluice_role_impaired) > 0`,
      for: '2m',
      severity: 'critical',
      summary: 'A replica of {{ $labels.role }} cannot work because of {{ $labels.reason }}.',
      impact:
        'Other replicas of the role will take over its work. If all of the replicas are affected, the role will stop working.',
      steps: [
        'Run `kubectl -n sluice-system logs -l app.kubernetes.io/name=sluice --tail=200` to find the message `role cannot work`, which appears once a minute. It shows the environment variable or the object that you need to change, as does `GET /readyz` on the ops port.',
        ...Object.entries(IMPAIRMENTS).map(([reason, meaning]) => `\`${reason}\`: ${meaning}`),
      ],
    },
    {
      name: 'SluiceRootKeyWaiting',
      expr: `max ${by()} (sluice_controller_root_key_missing_replicas) > 0`,
      for: '15m',
      severity: 'warning',
      summary: 'A new root key has been waiting for {{ $value }} replicas for 15 minutes.',
      impact: 'The previous root key stays in use. Nothing else is affected.',
      steps: [
        'Run `kubectl -n sluice-system logs -l app.kubernetes.io/component=controller --tail=-1` to find the message `the new root key will be used after these replicas have loaded it`, which contains the role, the pod, and the process of each replica.',
        'Search the logs of these replicas for the message `the root keys have changed and cannot be used`. It shows which file to change.',
        'Check that all pods mount the same Secret as a folder. Files that are mounted with `subPath` are never updated. See [Rotate the root key](install.md#rotate-the-root-key).',
      ],
    },
    {
      name: 'SluiceRootKeyMissing',
      expr: `max ${by('use')} (sluice_controller_root_key_uses{key="missing"}) > 0`,
      for: '5m',
      severity: 'critical',
      summary: '{{ $value }} uses ({{ $labels.use }}) of root keys that the controller does not have.',
      impact:
        'Subscriptions that need such a key are not delivered. Their events are kept until their retention period ends.',
      steps: [
        'Run `kubectl get subscriptions.sluice.dev -A` to find the subscriptions. Their reason is `SigningKeyMissing` or `HeaderNotReadable`, and the message of the first one contains the id of the root key.',
        'Restore the root key that was removed from the backup, under the same name. Subscriptions resume by themselves.',
        'If there is no backup, partners need to rotate their signing secrets and set the values of their headers again.',
      ],
    },
    {
      name: 'SluiceEventLoopBlocked',
      expr: `nodejs_eventloop_lag_p99_seconds > 0.5 and on (${INSTALLATION}, instance) sluice_build_info`,
      for: '10m',
      severity: 'warning',
      summary: 'The event loop of a process is blocked for more than half a second.',
      impact:
        'This delays all of the work of this process. If the delay exceeds one second, the facade responds with 503.',
      steps: [
        'Run the query `rate(process_cpu_seconds_total[5m])`. If the process uses almost one core, add replicas of the role or increase its CPU limit.',
        'Check `nodejs_gc_duration_seconds_sum` and the heap size. If the heap is close to its limit, increase the memory limit of the process.',
      ],
    },
    {
      name: 'SluiceCertificateExpiring',
      expr: `min ${by('use')} (sluice_certificate_expiry_timestamp_seconds) - time() < 7 * 86400`,
      for: '15m',
      severity: 'warning',
      summary: 'The certificate for {{ $labels.use }} expires in less than seven days.',
      impact:
        'After that, connections will fail. Without Redis, events are rejected and not delivered. Without the mail server, invitations are not sent. Clients of ingress and the facade no longer connect.',
      steps: [
        'Run `kubectl -n sluice-system get secrets --field-selector type=kubernetes.io/tls` to find the certificate, unless it belongs to Redis or to the mail server.',
        'If cert-manager issues the certificate, run `kubectl -n sluice-system describe certificates` to find out why it is not renewed.',
        'Otherwise, replace the certificate. Sluice will read its own certificates again within minutes. The alert is resolved up to ten minutes after Redis or the mail server uses a new one.',
      ],
    },
    {
      name: 'SluiceCertificateRejected',
      expr: `max ${by('use')} (sluice_certificate_rejected) > 0`,
      for: '5m',
      severity: 'warning',
      summary:
        'The files of the certificate for {{ $labels.use }} cannot be used, so the previous certificate still is.',
      impact: 'There is no impact until the previous certificate expires, or the process restarts, which then fails.',
      steps: [
        'Run `kubectl -n sluice-system get secrets --field-selector type=kubernetes.io/tls` to find the Secret, and check `tls.crt` and `tls.key` in it. The key must belong to the first certificate.',
        'Check the log for the messages `the new certificate cannot be used; still serving the last one` and `redis files cannot be used; the last ones are`. They contain the reason.',
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
        'Run `kubectl -n sluice-system rollout status deployment` to check the status of the upgrade. Complete it or roll it back.',
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
        'If Redis is unavailable, ingress responds with 503, and events are not delivered. Events that ingress accepted with 202 are stored on disk. Delivery will resume automatically.',
      steps: [
        'Run `redis-cli PING` on the host of the process, with the address from `SLUICE_REDIS_URL`, to check that Redis responds. Check the log of Redis.',
        'If you use `appendfsync always`, Redis stops when the disk is full. Free up disk space and start Redis again.',
        'You do not need to restart Sluice.',
      ],
    },
    {
      name: 'SluiceRedisErrors',
      expr: `${share('sluice_redis_command_errors_total', 'sluice_redis_commands_total', '5m')} > 0.01`,
      for: '5m',
      severity: 'warning',
      summary: 'More than 1 % of the Redis commands are failing.',
      impact: 'The work will be retried, and will be delayed. Ingress can respond with 503.',
      steps: [
        'Run the query `sum by (reason) (rate(sluice_redis_command_errors_total[5m]))` to find the reason.',
        'For the reason `memory`, see SluiceRedisMemoryHigh. For the reason `timeout`, see SluiceRedisSlow. The reason `unavailable` indicates a failover or a restart. The reason `refused` indicates a bug in Sluice or an unsupported version of Redis, and the log contains the error.',
      ],
    },
    {
      name: 'SluiceRedisSlow',
      expr: `${p99('sluice_redis_command_duration_seconds')} > 0.1`,
      for: '10m',
      severity: 'warning',
      summary: 'More than 1 % of the Redis commands take longer than 100 ms.',
      impact: 'Sluice runs several Redis commands to accept and deliver an event, so events are delayed.',
      steps: [
        'Run `redis-cli SLOWLOG GET` and `redis-cli --latency`. They also show commands from other users of the same Redis.',
        'If you use `appendfsync always`, each write waits for the disk. Check the latency of the disk.',
        'Redis uses a single core. If its CPU usage is close to 100 %, use a Redis Cluster to distribute the streams. Each stream stays on a single node.',
      ],
    },
    {
      name: 'SluiceRedisMemoryHigh',
      expr: `max ${by()} (sluice_redis_memory_used_ratio) > 0.75`,
      for: '10m',
      severity: 'warning',
      summary: 'Redis uses more than 75 % of its memory.',
      impact:
        'Accounts that store more than their share of the memory receive 429 `storage_pressure`, the largest first. If the usage reaches 82 %, ingress stops accepting all events until the usage is below 77 %. Stored events will still be delivered.',
      steps: [
        'Run the query `max(sluice_dispatcher_open_deliveries)` to check whether the number of open deliveries increases. Delivered events also use memory until their retention period ends.',
        'Increase the memory of Redis (`maxmemory`), decrease `spec.retention` of the largest streams, or decrease `SLUICE_QUEUE_MAX_BYTES`.',
      ],
    },
    {
      name: 'SluiceRedisMemoryFull',
      expr: `max ${by()} (sluice_redis_memory_used_ratio) > 0.82`,
      for: '1m',
      severity: 'critical',
      summary: 'Redis uses more than 82 % of its memory, and ingress does not accept events.',
      impact:
        'Producers will receive 503 and need to retry. Stored events are routed and delivered with the remaining memory.',
      steps: [
        'Run `redis-cli INFO memory`, and increase `maxmemory` with `redis-cli CONFIG SET maxmemory <bytes>`. If the machine does not have enough memory, decrease the retention of your streams.',
        'Keep `maxmemory-policy noeviction`. With any other policy, Redis removes gates and events.',
      ],
    },
  ],
};
