import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { OidcConfig, Role } from '../config/config.ts';
import { VERSION } from '../config/version.ts';
import { createController } from '../controller/controller.ts';
import { registerRuntimeMetrics } from '../controller/state-metrics.ts';
import { sealEndpoint } from '../core/delivery/endpoint-config.ts';
import { createNetworkPolicy, judgeEndpoint } from '../core/delivery/network.ts';
import { rootKeyFingerprint } from '../core/delivery/root-key-fingerprint.ts';
import { deriveSealKeys } from '../core/delivery/seal.ts';
import { createDispatcher } from '../dataplane/dispatcher/dispatcher.ts';
import { createEndpointClient } from '../dataplane/dispatcher/endpoint-client.ts';
import { createReplaySweep } from '../dataplane/dispatcher/replay-sweep.ts';
import { createIngestion } from '../dataplane/ingestion.ts';
import { createIngress } from '../dataplane/ingress/server.ts';
import { createRouter } from '../dataplane/router/router.ts';
import { createRoutingTrace } from '../dataplane/router/routing-spans.ts';
import { createSandboxDesk } from '../dataplane/sandbox/desk.ts';
import { createSandboxRunner } from '../dataplane/sandbox/sandbox-runner.ts';
import { countOperations } from '../facade/counted-operations.ts';
import { createFacadeMetrics } from '../facade/facade-metrics.ts';
import { createFacade } from '../facade/objects/facade.ts';
import { createFacadeServer } from '../facade/server.ts';
import { connect, type KubeClient } from '../kube/client.ts';
import { createCrdGate } from '../kube/crds.ts';
import { CONTROLLER_RULES, FACADE_RULES, LEASE_RULES } from '../kube/rights.ts';
import { createRightsWatch, type NeededRole } from '../kube/rights-watch.ts';
import { createInvitationMailer } from '../mail/mailer.ts';
import { createAlarm } from '../redis/alarm.ts';
import { createBacklogStore } from '../redis/backlog.ts';
import type { RedisClient } from '../redis/client.ts';
import { createControlAudit } from '../redis/control-audit.ts';
import { createControlStore } from '../redis/control-store.ts';
import { createControlSweep } from '../redis/control-sweep.ts';
import { createDeliveryReader } from '../redis/delivery-reader.ts';
import { createGateReader } from '../redis/gate-reader.ts';
import { createHintIndex } from '../redis/hints.ts';
import { createInboxOperations } from '../redis/inbox-operations.ts';
import { createInboxReader } from '../redis/inbox-reader.ts';
import { createInboxRecovery } from '../redis/inbox-recovery.ts';
import { createInboxStore } from '../redis/inbox-store.ts';
import { createIngressOperations } from '../redis/ingress-store.ts';
import type { HintKind } from '../redis/keys.ts';
import { createLedgerStore, readBalance } from '../redis/ledger-store.ts';
import { createQueueStore } from '../redis/queue-store.ts';
import { createReplays, type Replays } from '../redis/replays.ts';
import { holdHints, watchRootKey } from '../redis/root-key-watch.ts';
import { createRoutingReader } from '../redis/routing-reader.ts';
import { createTraceparentReader } from '../redis/traceparents.ts';
import { createTrafficReader } from '../redis/traffic-reader.ts';
import { createTrafficStore } from '../redis/traffic-store.ts';
import { registerBacklogMetrics } from '../redis/work-metrics.ts';
import type { ImpairmentCheck } from '../telemetry/role-health.ts';
import { systemClock } from '../time/clock.ts';
import { anyAddress, listenAt } from './listening.ts';
import { notSynced, type Parts, type Running } from './parts.ts';

function startController(parts: Parts): Running {
  const { config, log, registry, tracing, redis, kubeMetrics, nowMs } = parts;
  const client = connect({ kubeconfig: config.kubeconfig, metrics: kubeMetrics() });
  const rootKey = config.rootKey as Uint8Array;
  const sealKeys = deriveSealKeys(rootKey);
  const policy = createNetworkPolicy(config.allowedNetworks);
  const controller = createController({
    client,
    control: createControlStore(redis, rootKeyFingerprint(rootKey)),
    backlogs: createBacklogStore(redis),
    readDeliveries: createDeliveryReader(redis),
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
    tracing,
  });
  registerRuntimeMetrics(registry, controller);
  const stop = new AbortController();
  const missingRights = watchRights(parts, client, stop.signal, [
    { name: 'sluice-controller', rules: CONTROLLER_RULES },
    { name: 'sluice-controller', rules: LEASE_RULES, namespace: config.namespace },
  ]);
  // A status with a field that the API server does not know would be refused, for ever.
  const crds = createCrdGate({ client, clock: systemClock, log });
  const running = crds.pass(stop.signal).then(passed => (passed ? controller.run(stop.signal) : undefined));
  return {
    stop: async () => {
      stop.abort();
      await running;
      await client.close();
    },
    impairments: () => {
      const outdated = crds.impairments();
      const working =
        outdated.length > 0 ? outdated : [...notSynced(controller.readiness().missing), ...controller.impairments()];
      return [...parts.redisImpairments(), ...missingRights(), ...working];
    },
  };
}

/** Watches whether Kubernetes grants these roles, until `stop` aborts. */
function watchRights(
  { log }: Parts,
  client: KubeClient,
  stop: AbortSignal,
  roles: readonly NeededRole[],
): ImpairmentCheck {
  const watch = createRightsWatch({ client, roles, clock: systemClock, log });
  void watch.run(stop);
  return watch.impairments;
}

async function startIngress(parts: Parts): Promise<Running> {
  const { config, log, registry, tracing, redis, nowMs, alarm } = parts;
  const store = createIngestion({
    operations: createIngressOperations(redis, nowMs, alarm),
    lower: createHintIndex(redis, 'r').lower,
    nowMs,
  });
  const sandbox = createSandboxDesk({ redis, lower: createHintIndex(redis, 's').lower, nowMs });
  const ingress = createIngress({ store, sandbox, askMasters: redis.callAll, registry, tracing, log });
  const host = await anyAddress();
  const port = await listenAt('SLUICE_INGRESS_PORT', config.ingressPort, () =>
    ingress.listen(config.ingressPort, host),
  );
  log.info({ port }, 'ingress listens');
  return { drain: ingress.drain, stop: ingress.close, impairments: parts.redisImpairments };
}

async function startFacade(parts: Parts): Promise<Running> {
  const { config, log, registry, tracing, redis, kubeMetrics, nowMs } = parts;
  const rootKey = config.rootKey as Uint8Array;
  const keyWatch = await watchRootKey({ redis, fingerprint: rootKeyFingerprint(rootKey) });
  const client = connect({ kubeconfig: config.kubeconfig, metrics: kubeMetrics() });
  const metrics = createFacadeMetrics(registry);
  const operations = {
    operations: createInboxOperations({ redis, nowMs, lower: createHintIndex(redis, 'd').lower }),
    recovery: createInboxRecovery({ redis, nowMs, lower: createHintIndex(redis, 'd').lower }),
    replays: openReplays(redis, nowMs),
  };
  const facade = createFacade({
    client,
    clock: systemClock,
    gates: createGateReader(redis),
    inboxes: createInboxReader(redis),
    routing: createRoutingReader(redis, nowMs),
    traffic: createTrafficReader(redis),
    ...countOperations(operations, metrics.did),
    readBalance: account => readBalance(redis, account),
    rootKey,
    nowMs,
    log,
  });
  const stop = new AbortController();
  const watching = facade.world.run(stop.signal);
  const missingRights = watchRights(parts, client, stop.signal, [{ name: 'sluice-facade', rules: FACADE_RULES }]);
  const server = createFacadeServer({
    facade,
    authentication: { ...(config.oidc as OidcConfig), log },
    metrics,
    tracing,
    version: VERSION,
  });
  const host = await anyAddress();
  const port = await listenAt('SLUICE_FACADE_PORT', config.facadePort, () => server.listen(config.facadePort, host));
  log.info({ port }, 'facade listens');
  return {
    drain: server.drain,
    stop: async () => {
      await server.close();
      keyWatch.stop();
      stop.abort();
      await watching;
      await client.close();
    },
    impairments: () => [...keyWatch.impairments(), ...missingRights(), ...notSynced(facade.world.staleKinds())],
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

function startRouter({ log, registry, tracing, redis, redisImpairments, nowMs, alarm }: Parts): Running {
  const router = createRouter({
    queues: createQueueStore(redis),
    inboxes: createInboxStore(redis),
    ledger: createLedgerStore(redis),
    traffic: createTrafficStore(redis),
    queueHints: createHintIndex(redis, 'r'),
    inboxHints: createHintIndex(redis, 'd'),
    alarm,
    nowMs,
    log,
    registry,
    trace: tracing && createRoutingTrace({ tracing, readTraceparents: createTraceparentReader(redis), log }),
  });
  redis.onReconnect(router.onReconnect);
  router.start();
  return { stop: router.stop, impairments: redisImpairments };
}

async function startDispatcher(parts: Parts): Promise<Running> {
  const { config, log, registry, tracing, redis, nowMs, alarm } = parts;
  const rootKey = config.rootKey as Uint8Array;
  const keyWatch = await watchRootKey({
    redis,
    fingerprint: rootKeyFingerprint(rootKey),
    onMatch: () => {
      dispatcher.onReconnect();
      sandbox.lookEverywhere();
    },
  });
  // What another key has sealed cannot be opened: it stays due until the keys are the same.
  const held = (kind: HintKind) => holdHints(createHintIndex(redis, kind), keyWatch.differs);
  const client = createEndpointClient({ allowedNetworks: config.allowedNetworks });
  const dispatcher = createDispatcher({
    inboxes: createInboxStore(redis),
    hints: held('d'),
    traffic: createTrafficStore(redis),
    client,
    keys: { rootKey, sealKeys: deriveSealKeys(rootKey) },
    version: VERSION,
    alarm,
    nowMs,
    log,
    registry,
    tracing,
  });
  const sweep = createReplaySweep({
    replays: openReplays(redis, nowMs),
    hints: createHintIndex(redis, 'a'),
    nowMs,
    log,
  });
  registerBacklogMetrics(registry, { redis, nowMs });
  redis.onReconnect(dispatcher.onReconnect);
  const sandbox = createSandboxRunner({
    redis,
    hints: held('s'),
    keys: { rootKey, sealKeys: deriveSealKeys(rootKey) },
    version: VERSION,
    alarm,
    nowMs,
    log,
  });
  redis.onReconnect(sweep.lookEverywhere);
  redis.onReconnect(sandbox.lookEverywhere);
  dispatcher.start();
  sweep.start();
  sandbox.start();
  return {
    stop: async () => {
      keyWatch.stop();
      await sandbox.stop();
      await sweep.stop();
      await dispatcher.stop();
      await client.close();
    },
    impairments: () => [...parts.redisImpairments(), ...keyWatch.impairments()],
  };
}

/** Starts a role; it works when this has ended. */
export const START: Record<Role, (parts: Parts) => Running | Promise<Running>> = {
  controller: startController,
  facade: startFacade,
  ingress: startIngress,
  router: startRouter,
  dispatcher: startDispatcher,
};
