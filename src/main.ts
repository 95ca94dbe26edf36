import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { type Config, ConfigError, type OidcConfig, type Role, readConfig } from './config.ts';
import { createController } from './controller/controller.ts';
import { sealEndpoint } from './core/endpoint-config.ts';
import { createNetworkPolicy, judgeEndpoint } from './core/network.ts';
import { deriveSealKeys } from './core/seal.ts';
import { createDispatcher } from './dataplane/dispatcher/dispatcher.ts';
import { createEndpointClient } from './dataplane/dispatcher/endpoint-client.ts';
import { createReplaySweep } from './dataplane/dispatcher/replay-sweep.ts';
import { createIngestion } from './dataplane/ingestion.ts';
import { createIngress } from './dataplane/ingress/server.ts';
import { createRouter } from './dataplane/router/router.ts';
import { createFacade } from './facade/facade.ts';
import { createFacadeServer } from './facade/server.ts';
import { connect } from './kube/client.ts';
import { systemClock } from './kube/clock.ts';
import { createInvitationMailer } from './mail/mailer.ts';
import { createAlarm } from './redis/alarm.ts';
import { createBacklogStore } from './redis/backlog.ts';
import { checkRedis } from './redis/check.ts';
import { connectRedis, type RedisClient } from './redis/client.ts';
import { followRedisClock } from './redis/clock.ts';
import { createControlAudit } from './redis/control-audit.ts';
import { createControlStore } from './redis/control-store.ts';
import { createControlSweep } from './redis/control-sweep.ts';
import { createGateReader } from './redis/gate-reader.ts';
import { createHintIndex } from './redis/hints.ts';
import { createInboxOperations } from './redis/inbox-operations.ts';
import { createInboxReader } from './redis/inbox-reader.ts';
import { createInboxRecovery } from './redis/inbox-recovery.ts';
import { createInboxStore } from './redis/inbox-store.ts';
import { createIngressOperations } from './redis/ingress-store.ts';
import { createLedgerStore, readBalance } from './redis/ledger-store.ts';
import { createQueueStore } from './redis/queue-store.ts';
import { createReplays, type Replays } from './redis/replays.ts';
import { createRoutingReader } from './redis/routing-reader.ts';
import { createLogger, type Logger } from './telemetry/log.ts';
import { Counter, createRegistry, type Registry } from './telemetry/metrics.ts';
import { type OpsServer, type ReadinessCheck, startOpsServer } from './telemetry/ops-server.ts';
import { VERSION } from './version.ts';

/** A role that runs: how it is stopped, and whether it is ready (why not). */
interface Running {
  readonly stop: () => Promise<void>;
  readonly ready: ReadinessCheck;
}

interface Parts {
  readonly config: Config;
  readonly log: Logger;
  readonly registry: Registry;
  readonly redis: RedisClient;
  readonly nowMs: () => number;
  readonly alarm: (slot: string) => void;
}

/** How long a stop may take before the process ends all the same. */
const STOP_WITHIN_MS = 25_000;

function startController({ config, log, registry, redis, nowMs }: Parts): Running {
  const client = connect({ kubeconfig: config.kubeconfig });
  const rootKey = config.rootKey as Uint8Array;
  const sealKeys = deriveSealKeys(rootKey);
  const policy = createNetworkPolicy(config.allowedNetworks);
  const controller = createController({
    client,
    control: createControlStore(redis),
    backlogs: createBacklogStore(redis),
    openAudit: pace => createControlAudit(redis, pace),
    remains: createControlSweep(redis),
    queueHints: createHintIndex(redis, 'r'),
    inboxHints: createHintIndex(redis, 'd'),
    onAlarm: createAlarm(redis).listen,
    onReconnect: redis.onReconnect,
    nowMs,
    rootKey,
    sendInvitation: config.mail && createInvitationMailer(config.mail),
    compile: {
      queueMaxBytes: config.queueMaxBytes,
      judgeEndpoint: url => judgeEndpoint(url, policy),
      sealEndpoint: (subscription, endpoint) => sealEndpoint(sealKeys, subscription, endpoint),
    },
    namespace: config.namespace,
    identity: `${hostname()}_${randomUUID()}`,
    clock: systemClock,
    log,
    registry,
  });
  const stop = new AbortController();
  const running = controller.run(stop.signal);
  return {
    stop: async () => {
      stop.abort();
      await running;
      await client.close();
    },
    ready: () => {
      const { ready, missing } = controller.readiness();
      return ready ? undefined : `caches are empty: ${missing.join(', ')}`;
    },
  };
}

async function startIngress({ config, log, registry, redis, nowMs, alarm }: Parts): Promise<Running> {
  const store = createIngestion({
    operations: createIngressOperations(redis, nowMs, alarm),
    lower: createHintIndex(redis, 'r').lower,
    nowMs,
  });
  const ingress = createIngress({ store, registry, log });
  const port = await ingress.listen(config.ingressPort, '::');
  log.info({ port }, 'ingress listens');
  return { stop: ingress.close, ready: () => (redis.isReady() ? undefined : 'redis is away') };
}

async function startFacade({ config, log, registry, redis, nowMs }: Parts): Promise<Running> {
  const client = connect({ kubeconfig: config.kubeconfig });
  const facade = createFacade({
    client,
    clock: systemClock,
    gates: createGateReader(redis),
    inboxes: createInboxReader(redis),
    routing: createRoutingReader(redis, nowMs),
    operations: createInboxOperations({ redis, nowMs, lower: createHintIndex(redis, 'd').lower }),
    recovery: createInboxRecovery({ redis, nowMs, lower: createHintIndex(redis, 'd').lower }),
    replays: openReplays(redis, nowMs),
    readBalance: account => readBalance(redis, account),
    rootKey: config.rootKey as Uint8Array,
    nowMs,
    log,
  });
  const stop = new AbortController();
  const watching = facade.world.run(stop.signal);
  const server = createFacadeServer({
    facade,
    authentication: { ...(config.oidc as OidcConfig), log },
    registry,
    version: VERSION,
  });
  const port = await server.listen(config.facadePort);
  log.info({ port }, 'facade listens');
  return {
    stop: async () => {
      await server.close();
      stop.abort();
      await watching;
      await client.close();
    },
    ready: () => {
      const stale = facade.world.staleKinds();
      return stale.length === 0 ? undefined : `caches are out of date: ${stale.join(', ')}`;
    },
  };
}

function openReplays(redis: RedisClient, nowMs: () => number): Replays {
  return createReplays({
    redis,
    nowMs,
    lowerInboxes: createHintIndex(redis, 'd').lower,
    lowerAccounts: createHintIndex(redis, 'a').lower,
  });
}

function startRouter({ log, registry, redis, nowMs, alarm }: Parts): Running {
  const router = createRouter({
    queues: createQueueStore(redis),
    inboxes: createInboxStore(redis),
    ledger: createLedgerStore(redis),
    queueHints: createHintIndex(redis, 'r'),
    inboxHints: createHintIndex(redis, 'd'),
    alarm,
    nowMs,
    log,
    registry,
  });
  redis.onReconnect(router.onReconnect);
  router.start();
  return { stop: router.stop, ready: () => (redis.isReady() ? undefined : 'redis is away') };
}

function startDispatcher({ config, log, registry, redis, nowMs, alarm }: Parts): Running {
  const rootKey = config.rootKey as Uint8Array;
  const client = createEndpointClient({ allowedNetworks: config.allowedNetworks });
  const dispatcher = createDispatcher({
    inboxes: createInboxStore(redis),
    hints: createHintIndex(redis, 'd'),
    client,
    keys: { rootKey, sealKeys: deriveSealKeys(rootKey) },
    version: VERSION,
    alarm,
    nowMs,
    log,
    registry,
  });
  const sweep = createReplaySweep({
    replays: openReplays(redis, nowMs),
    hints: createHintIndex(redis, 'a'),
    nowMs,
    log,
  });
  redis.onReconnect(dispatcher.onReconnect);
  redis.onReconnect(sweep.lookEverywhere);
  dispatcher.start();
  sweep.start();
  return {
    stop: async () => {
      await sweep.stop();
      await dispatcher.stop();
      await client.close();
    },
    ready: () => (redis.isReady() ? undefined : 'redis is away'),
  };
}

const START: Record<Role, (parts: Parts) => Running | Promise<Running>> = {
  controller: startController,
  facade: startFacade,
  ingress: startIngress,
  router: startRouter,
  dispatcher: startDispatcher,
};

async function main(config: Config): Promise<void> {
  const log = createLogger({
    level: config.logLevel,
    ...(config.roles.length === 1 ? { role: config.roles[0] as Role } : {}),
  });
  const registry = createRegistry();
  const redis = await connectRedis(config.redisUrl, log);
  await checkRedis(redis, log);
  const clock = await followRedisClock(redis);
  const alarm = createAlarm(redis).raise;
  new Counter({
    name: 'sluice_redis_commands_total',
    help: 'Commands sent to Redis; a script counts as one.',
    registers: [registry],
    collect() {
      this.reset();
      this.inc(redis.commandsSent());
    },
  });
  const parts: Parts = { config, log, registry, redis, nowMs: clock.nowMs, alarm };
  const running = new Map<Role, Running>();
  // Those who accept last: what they take has somebody to work on it.
  for (const role of ['controller', 'router', 'dispatcher', 'ingress', 'facade'] as const) {
    if (config.roles.includes(role)) running.set(role, await START[role](parts));
  }
  const checks = Object.fromEntries([...running].map(([role, { ready }]) => [role, ready]));
  const ops: OpsServer = await startOpsServer(config.opsPort, registry, checks);
  log.info({ roles: config.roles, opsPort: ops.port, version: VERSION }, 'sluice runs');

  let stopping = false;
  async function stop(signal: string): Promise<void> {
    if (stopping) return;
    stopping = true;
    log.info({ signal }, 'stopping');
    setTimeout(() => {
      log.error('stopping took too long');
      process.exit(1);
    }, STOP_WITHIN_MS).unref();
    // Those who accept first: nothing more comes in while the others finish.
    for (const role of ['facade', 'ingress', 'router', 'dispatcher', 'controller'] as const)
      await running.get(role)?.stop();
    await ops.close();
    clock.stop();
    await redis.close();
    log.info('stopped');
    process.exit(0);
  }
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => void stop(signal));
}

try {
  await main(readConfig(process.argv.slice(2), process.env));
} catch (error) {
  if (error instanceof ConfigError) process.stderr.write(`${error.message}\n`);
  else createLogger({ level: 'info' }).fatal({ err: error }, 'sluice cannot start');
  process.exit(1);
}
