import { IMPAIRMENTS } from '../../../src/telemetry/role-health.ts';
import { type AlertGroup, p99, share } from './alert-rule.ts';

/** Without these nothing moves; a facade is not everywhere. */
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
        'Without ingress events are refused; without a router or a dispatcher they are kept and late; without a controller changes of custom resources do not come into force, and events flow on; without a facade REST is away.',
      steps: [
        'See whether its pods run: `kubectl -n sluice-system get pods`, and their logs.',
        'A pod that runs and is not ready says why: `GET /readyz` on its port for operations.',
        '`sluice cannot start` in the log names what is missing: a variable, the root key, [settings of Redis](configuration.md#redis).',
      ],
    },
    {
      name: 'SluiceReplicaNotReady',
      expr: 'sluice_role_ready == 0',
      for: '15m',
      severity: 'warning',
      summary: 'A replica of {{ $labels.role }} has not been ready for a quarter of an hour.',
      impact: 'None while others of its role are ready.',
      steps: ['`GET /readyz` on its port for operations says what it waits for: Redis, or caches of the API server.'],
    },
    {
      name: 'SluiceRoleImpaired',
      expr: 'max by (role, reason) (sluice_role_impaired) > 0',
      for: '2m',
      severity: 'critical',
      summary: 'A replica of {{ $labels.role }} cannot do its work: {{ $labels.reason }}.',
      impact:
        'Its work is left to the other replicas of the role. If all of them say the same, the work of the role is not done.',
      steps: [
        '`GET /readyz` on its ops port names the environment variable or the object to change; so does the log line `role cannot work`, once a minute.',
        ...Object.entries(IMPAIRMENTS).map(([reason, meaning]) => `\`${reason}\`: ${meaning}`),
      ],
    },
    {
      name: 'SluiceEventLoopBlocked',
      expr: 'nodejs_eventloop_lag_p99_seconds > 0.5 and on (instance, job) sluice_build_info',
      for: '10m',
      severity: 'warning',
      summary: 'A process is busy for more than half a second at a time.',
      impact: 'Everything that it does is late; the facade answers 503 beyond a second.',
      steps: [
        'See `process_cpu_seconds_total`: near one core, add replicas of the role, or give it more CPU.',
        'See `nodejs_gc_duration_seconds_sum` and the heap: near its limit, give it more memory.',
      ],
    },
    {
      name: 'SluiceVersionsDiffer',
      expr: 'count(count by (version) (sluice_build_info)) > 1',
      for: '60m',
      severity: 'info',
      summary: 'Processes of different versions have run for an hour.',
      impact: 'None: neighbouring versions work together, for the time of an upgrade.',
      steps: ['Finish the upgrade, or go back: `kubectl -n sluice-system rollout status deployment`.'],
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
        'Ingress answers 503 and nothing is routed or delivered. What was acknowledged is on disk, and goes on by itself.',
      steps: [
        'See whether Redis runs and answers `PING` from where the process is; see its log.',
        'A full disk ends a Redis with `appendfsync always`: make room and start it.',
        'Nothing of Sluice has to be restarted.',
      ],
    },
    {
      name: 'SluiceRedisErrors',
      expr: `${share('sluice_redis_command_errors_total', 'sluice_redis_commands_total', '5m')} > 0.01`,
      for: '5m',
      severity: 'warning',
      summary: 'More than one in a hundred commands to Redis fails.',
      impact: 'Work is repeated and late; ingress may answer 503.',
      steps: [
        '`sum by (reason) (rate(sluice_redis_command_errors_total[5m]))` says why.',
        'memory: see SluiceRedisMemoryHigh. timeout: see SluiceRedisSlow. unavailable: a failover or a start. refused: an error of ours or a Redis of another version; the log has it.',
      ],
    },
    {
      name: 'SluiceRedisSlow',
      expr: `${p99('sluice_redis_command_duration_seconds')} > 0.1`,
      for: '10m',
      severity: 'warning',
      summary: 'One in a hundred commands to Redis takes more than 100 ms.',
      impact: 'Acceptance and delivery are late by several such commands.',
      steps: [
        '`redis-cli --latency` and `SLOWLOG GET` at Redis; other users of the same Redis show up there.',
        'With `appendfsync always` each write waits for the disk: see its latency.',
        'One core of Redis is all that it uses: near it, split the queues over a Cluster.',
      ],
    },
    {
      name: 'SluiceRedisMemoryHigh',
      expr: 'max(sluice_redis_memory_used_ratio) > 0.75',
      for: '10m',
      severity: 'warning',
      summary: 'Redis uses more than three quarters of its memory.',
      impact:
        'None yet. From 85 % on ingress takes no events until less than 80 % is used; what is stored is still delivered.',
      steps: [
        'See whether deliveries pile up (`sluice_dispatcher_open_deliveries`): events stay until their retention ends in any case.',
        'Give Redis more memory (`maxmemory`), or shorten `spec.retention` of the streams that hold the most, or lower `SLUICE_QUEUE_MAX_BYTES`.',
      ],
    },
    {
      name: 'SluiceRedisMemoryFull',
      expr: 'max(sluice_redis_memory_used_ratio) > 0.85',
      for: '1m',
      severity: 'critical',
      summary: 'Redis uses so much of its memory that ingress takes no more events.',
      impact:
        'No event is accepted: producers get 503 and have to repeat. What is stored is routed and delivered in the rest.',
      steps: [
        'Raise `maxmemory` now: `redis-cli CONFIG SET maxmemory <bytes>`; where the machine has no more, shorten retentions.',
        'Never set another `maxmemory-policy` than `noeviction`: it would drop gates and events.',
      ],
    },
  ],
};
