import { type Config, ConfigError, type Role, readConfig } from './config/config.ts';
import { VERSION } from './config/version.ts';
import type { WorkSources } from './hints/work-metrics.ts';
import { createKubeMetrics, type KubeMetrics } from './kube/kube-metrics.ts';
import { createSurveySampler, type ReadSurvey, registerWorkMetrics } from './part/survey/work-metrics.ts';
import { createAlarm } from './record/alarm.ts';
import { watchRedisCertificates } from './redis/connection/certificate.ts';
import { openRedis } from './redis/late-client.ts';
import { createRedisMetrics, registerRedisGauges } from './redis/redis-metrics.ts';
import { listenAt } from './roles/listening.ts';
import type { Parts, Running } from './roles/parts.ts';
import { loadRoles } from './roles/roles.ts';
import { createShutdown, handleSignals } from './shutdown.ts';
import { createLogger, type Logger } from './telemetry/log.ts';
import { createRegistry, type Registry } from './telemetry/metrics.ts';
import { startOpsServer } from './telemetry/ops-server.ts';
import { registerProcessMetrics, registerRoleHealth } from './telemetry/process-metrics.ts';
import { watchRoleHealth } from './telemetry/role-health.ts';
import { type CertificateMetrics, createCertificateMetrics } from './tls/certificate-metrics.ts';

/**
 * Returns the Redis connection settings. Dispatchers don't wait for replicas, because a result lost in a failover is
 * sent again.
 */
function redisOf({ redis, roles, instance }: Config) {
  const waitReplicas = roles.every(role => role === 'dispatcher') ? 0 : redis.waitReplicas;
  return { ...redis, waitReplicas, instance };
}

/**
 * Logs an unexpected error and ends the process. Node would print the error with all of its fields. An error of Redis
 * contains the arguments of its command.
 */
function endOnUnexpectedErrors(log: Logger): void {
  process.on('uncaughtException', error => {
    log.fatal({ err: error }, 'sluice ends because of an unexpected error');
    process.exit(1);
  });
}

async function main(config: Config): Promise<void> {
  const only = config.roles.length === 1 ? { role: config.roles[0] as Role } : {};
  const log = createLogger({ level: config.logLevel, ...only });
  endOnUnexpectedErrors(log);
  const starts = await loadRoles(config.roles);
  const registry = openRegistry();
  // Only load this when tracing is enabled: the SDK is larger than all of Sluice.
  const tracing =
    config.tracing &&
    (await (await import('./telemetry/tracing-sdk.ts')).openTracing(config.tracing, { version: VERSION, log }));
  const redis = openRedis({ ...redisOf(config), log, metrics: createRedisMetrics(registry) });
  registerRedisGauges(registry, redis.client, redis.nowMs);
  let kubeMetrics: KubeMetrics | undefined;
  const parts: Parts = {
    config,
    log,
    registry,
    tracing,
    redis: redis.client,
    redisImpairments: redis.impairments,
    keysVersion: redis.keysVersion,
    kubeMetrics: () => (kubeMetrics ??= createKubeMetrics(registry)),
    certificates: watchCertificates(config, log, registry),
    nowMs: redis.nowMs,
    survey: registerWork(registry, { redis: redis.client, nowMs: redis.nowMs }),
    alarm: createAlarm(redis.client).raise,
  };
  const running = new Map<Role, Running>();
  const health = config.roles.map(role => {
    const check = () => running.get(role)?.impairments() ?? redis.waiting();
    return [role, watchRoleHealth({ role, check, log })] as const;
  });
  const checks = Object.fromEntries(health.map(([role, { state }]) => [role, state]));
  registerRoleHealth(registry, checks);
  const shutdown = createShutdown(
    {
      drain: () => {
        log.info('stopping');
        for (const { drain } of running.values()) drain?.();
      },
      stop,
      giveUp: () => {
        log.error('stopping took too long');
        process.exit(1);
      },
    },
    // Other roles don't receive requests from a Service.
    config.roles.some(role => role === 'ingress' || role === 'facade') ? config.shutdownDelayMs : 0,
  );
  const ops = await listenAt('SLUICE_OPS_PORT', config.opsPort, () =>
    startOpsServer({ host: config.opsHost, port: config.opsPort }, registry, { ...checks, process: shutdown.health }),
  );
  handleSignals(shutdown.onSignal);
  log.info({ roles: config.roles, opsPort: ops.port, version: VERSION }, 'sluice runs');
  noteAddresses(config, log);
  await startRoles();

  async function startRoles(): Promise<void> {
    const start = async (role: Role) => {
      const begin = starts.get(role);
      if (begin !== undefined) running.set(role, await begin(parts));
    };
    // Without Redis, the controller can still remove finalizers from deleted objects.
    await start('controller');
    await redis.opened;
    // Start ingress and the facade last because the other roles process accepted events and changes.
    for (const role of ['dispatcher', 'ingress', 'facade'] as const) await start(role);
  }

  async function stop(): Promise<void> {
    await stopRoles(running);
    await tracing?.stop();
    for (const [, { stop }] of health) stop();
    await ops.close();
    await redis.close();
    log.info('stopped');
    process.exit(0);
  }
}

/**
 * Stops all roles. Clients and endpoints can keep most of them waiting, so they stop at the same time. The controller
 * is the last to stop, because calls to the facade wait until it has applied their changes.
 */
async function stopRoles(running: ReadonlyMap<Role, Running>): Promise<void> {
  await Promise.all((['facade', 'ingress', 'dispatcher'] as const).map(async role => running.get(role)?.stop()));
  await running.get('controller')?.stop();
}

/** Logs that there are no address limits, if they are supported by one of the roles. */
function noteAddresses({ roles, trustedProxies }: Config, log: Logger): void {
  if (trustedProxies !== undefined || !roles.some(role => role === 'ingress' || role === 'facade')) return;
  log.info(
    'there are no address limits, because SLUICE_TRUSTED_PROXIES is not set; set it to the networks of your proxies, or to none if clients connect directly',
  );
}

function openRegistry(): Registry {
  const registry = createRegistry();
  registerProcessMetrics(registry, VERSION);
  return registry;
}

/** Registers what waits to be worked on. Returns a function to read it. */
function registerWork(registry: Registry, sources: WorkSources): ReadSurvey {
  const survey = createSurveySampler(sources.redis);
  registerWorkMetrics(registry, { ...sources, survey });
  return survey;
}

function watchCertificates({ redis }: Config, log: Logger, registry: Registry): CertificateMetrics {
  const certificates = createCertificateMetrics(registry);
  watchRedisCertificates(redis, log, certificates);
  return certificates;
}

try {
  await main(readConfig(process.argv.slice(2), process.env));
} catch (error) {
  if (error instanceof ConfigError) process.stderr.write(`${error.message}\n`);
  else createLogger({ level: 'info' }).fatal({ err: error }, 'sluice cannot start');
  process.exit(1);
}
