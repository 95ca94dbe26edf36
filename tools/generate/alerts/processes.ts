import { IMPAIRMENTS } from '../../../src/telemetry/role-health.ts';
import { type AlertGroup, p99, share } from './alert-rule.ts';

/** Every installation needs these roles; the facade is optional. */
const NEEDED_ROLES = ['controller', 'ingress', 'router', 'dispatcher'];

const isMissing = (role: string) => `absent(sluice_role_ready{role="${role}"} == 1)`;

export const processes: AlertGroup = {
  name: 'sluice-processes',
  rules: [
    {
      name: 'SluiceRoleMissing',
      expr: `${NEEDED_ROLES.map(isMissing).join(' or ')} or max by (role) (sluice_role_ready{role="facade"}) == 0`,
      for: '5m',
      severity: 'critical',
      summary: 'No replica of {{ $labels.role }} is ready.',
      impact:
        'Without ingress, events are refused. Without a router or a dispatcher, events are kept and late. Without a controller, changes of custom resources are not applied; events still flow. Without a facade, REST is unavailable.',
      steps: [
        'Check its pods and their logs: `kubectl -n sluice-system get pods`.',
        'If a pod runs and is not ready, `GET /readyz` on its ops port gives the reason.',
        'The log line `sluice cannot start` names the cause: a variable, the root key, or [settings of Redis](configuration.md#redis).',
      ],
    },
    {
      name: 'SluiceReplicaNotReady',
      expr: 'sluice_role_ready == 0',
      for: '15m',
      severity: 'warning',
      summary: 'A replica of {{ $labels.role }} has not been ready for 15 minutes.',
      impact: 'None while other replicas of the role are ready.',
      steps: ['`GET /readyz` on its ops port lists what it waits for, such as Redis or the API server.'],
    },
    {
      name: 'SluiceRoleImpaired',
      expr: 'max by (role, reason) (sluice_role_impaired) > 0',
      for: '2m',
      severity: 'critical',
      summary: 'A replica of {{ $labels.role }} cannot do its work: {{ $labels.reason }}.',
      impact: 'The other replicas of the role do its work. If all of them are impaired, the work of the role stops.',
      steps: [
        '`GET /readyz` on its ops port names the environment variable or the object to change. The log line `role cannot work` does too, once a minute.',
        ...Object.entries(IMPAIRMENTS).map(([reason, meaning]) => `\`${reason}\`: ${meaning}`),
      ],
    },
    {
      name: 'SluiceEventLoopBlocked',
      expr: 'nodejs_eventloop_lag_p99_seconds > 0.5 and on (instance, job) sluice_build_info',
      for: '10m',
      severity: 'warning',
      summary: 'The event loop of a process is blocked for more than half a second at a time.',
      impact: 'All work of the process is late. A facade answers 503 when the delay exceeds one second.',
      steps: [
        'Check `process_cpu_seconds_total`. If it is near one core, add replicas of the role or give it more CPU.',
        'Check `nodejs_gc_duration_seconds_sum` and the heap. If the heap is near its limit, give the process more memory.',
      ],
    },
    {
      name: 'SluiceVersionsDiffer',
      expr: 'count(count by (version) (sluice_build_info)) > 1',
      for: '60m',
      severity: 'info',
      summary: 'Processes of different versions have run for an hour.',
      impact: 'None during an upgrade: adjacent versions work together.',
      steps: ['Finish the upgrade, or roll it back: `kubectl -n sluice-system rollout status deployment`.'],
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
      summary: 'A process has no connection to Redis.',
      impact:
        'Without Redis, ingress answers 503 and nothing is routed or delivered. Events that were answered with 202 are on disk; routing and delivery resume by themselves.',
      steps: [
        'Check that Redis runs and answers `PING` from the host of the process. Check its log.',
        'With `appendfsync always` a full disk stops Redis: free space and start it.',
        'You do not have to restart Sluice.',
      ],
    },
    {
      name: 'SluiceRedisErrors',
      expr: `${share('sluice_redis_command_errors_total', 'sluice_redis_commands_total', '5m')} > 0.01`,
      for: '5m',
      severity: 'warning',
      summary: 'More than 1 % of the commands to Redis fail.',
      impact: 'Work is retried and late; ingress may answer 503.',
      steps: [
        '`sum by (reason) (rate(sluice_redis_command_errors_total[5m]))` shows the reason.',
        '`memory`: see SluiceRedisMemoryHigh. `timeout`: see SluiceRedisSlow. `unavailable`: a failover or a start. `refused`: a bug in Sluice or another version of Redis; the log has the error.',
      ],
    },
    {
      name: 'SluiceRedisSlow',
      expr: `${p99('sluice_redis_command_duration_seconds')} > 0.1`,
      for: '10m',
      severity: 'warning',
      summary: '1 % of the commands to Redis take more than 100 ms.',
      impact: 'Accepting and delivering an event takes several such commands, so both are late.',
      steps: [
        'Run `redis-cli --latency` and `SLOWLOG GET`; they also show other users of the same Redis.',
        'With `appendfsync always` each write waits for the disk: check its latency.',
        'Redis uses one core. If its CPU is near that, spread the queues over a Cluster.',
      ],
    },
    {
      name: 'SluiceRedisMemoryHigh',
      expr: 'max(sluice_redis_memory_used_ratio) > 0.75',
      for: '10m',
      severity: 'warning',
      summary: 'Redis uses more than 75 % of its memory.',
      impact:
        'None yet. At 85 % ingress stops accepting events until less than 80 % is used; stored events are still delivered.',
      steps: [
        'Check whether deliveries pile up (`sluice_dispatcher_open_deliveries`). Delivered events stay in memory until their retention ends, too.',
        'Give Redis more memory (`maxmemory`), shorten `spec.retention` of the largest streams, or lower `SLUICE_QUEUE_MAX_BYTES`.',
      ],
    },
    {
      name: 'SluiceRedisMemoryFull',
      expr: 'max(sluice_redis_memory_used_ratio) > 0.85',
      for: '1m',
      severity: 'critical',
      summary: 'Redis uses more than 85 % of its memory, and ingress accepts no events.',
      impact: 'Producers get 503 and must retry. Stored events are routed and delivered in the remaining memory.',
      steps: [
        'Raise `maxmemory` now: `redis-cli CONFIG SET maxmemory <bytes>`. If the machine has no more memory, shorten retentions.',
        'Keep `maxmemory-policy noeviction`: any other policy drops gates and events.',
      ],
    },
  ],
};
