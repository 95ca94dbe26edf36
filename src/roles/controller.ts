import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { createController } from '../controller/controller.ts';
import type { ControllerOptions, ControllerRole } from '../controller/controller-options.ts';
import { registerRuntimeMetrics } from '../controller/state-metrics.ts';
import { sealEndpoint } from '../core/delivery/endpoint-config.ts';
import { createHeaderSeals } from '../core/delivery/header-seal.ts';
import { createNetworkPolicy, judgeEndpoint } from '../core/delivery/network.ts';
import { controllerProbe } from '../kube/access/policy-probes.ts';
import { CONTROLLER_RULES, LEASE_RULES, SECRETS_RULES } from '../kube/access/rights.ts';
import { connect } from '../kube/client.ts';
import { createCrdGate } from '../kube/definitions/crds.ts';
import { leaseNamespace } from '../kube/lease-namespace.ts';
import { readSmtpCertificateEnd } from '../mail/certificate.ts';
import { createInvitationMailer } from '../mail/mailer.ts';
import { createPartAudit } from '../part/control/part-audit.ts';
import { createPartsControl } from '../part/control/parts-control.ts';
import { createPartBacklogStore } from '../part/state/backlog.ts';
import { createPartControlSweep } from '../part/state/control-sweep.ts';
import { createSubscriptionStates } from '../part/state/subscriptions.ts';
import { createAlarm } from '../record/alarm.ts';
import { createControlAudit } from '../record/control-audit.ts';
import { type ControlRecord, createControlRecord } from '../record/control-store.ts';
import { createMailRecord } from '../record/mail-record.ts';
import { readRootKeyReports } from '../record/root-key-reports.ts';
import { rewriteFilesAfterRestarts } from '../redis/file-rewrites.ts';
import { systemClock } from '../time/clock.ts';
import { notSynced, type Parts, type Running } from './parts.ts';
import { watchPolicies } from './policies.ts';
import { watchRights } from './rights.ts';
import { followRootKeys } from './root-keys.ts';
import { type StandbyKey, watchStandbyKey } from './standby-key.ts';
import { watchStandbyRedis } from './standby-redis.ts';

type DataPlane = Pick<ControllerOptions, 'control' | 'purger' | 'backlogs' | 'readDeliveries' | 'onEventsRemoved'>;

function openDataPlane({ redis, nowMs }: Parts, record: ControlRecord): DataPlane {
  let onEventsRemoved: Parameters<DataPlane['onEventsRemoved']>[0] = () => {};
  const control = createPartsControl(redis, record, nowMs, (part, left) => onEventsRemoved(part, left));
  return {
    control,
    onEventsRemoved: listener => void (onEventsRemoved = listener),
    purger: createPartControlSweep(redis, record.patch),
    backlogs: createPartBacklogStore(redis, control.findStream),
    readDeliveries: createSubscriptionStates(redis, control.findStream).readDeliveries,
  };
}

/** Compares the root key and the Redis of a standby with those of the leader. */
function watchStandby(
  own: Pick<Parameters<typeof watchStandbyKey>[0], 'redis' | 'keys' | 'before'> & Pick<ControlRecord, 'readStore'>,
  { readiness, leadersStore }: Pick<ControllerRole, 'readiness' | 'leadersStore'>,
  stop: AbortSignal,
): StandbyKey {
  const key = watchStandbyKey({ ...own, isLeading: () => readiness().leading });
  const otherRedis = watchStandbyRedis({ ...own, leadersStore, clock: systemClock, stop });
  return { stop: key.stop, impairments: () => [...key.impairments(), ...otherRedis()] };
}

/** Returns the stack of an error without its message. */
const framesOf = (error: unknown): string[] =>
  ((error as Error).stack ?? '').split('\n').filter(line => line.startsWith('    at '));

export function startController(parts: Parts): Running {
  const { config, log, registry, tracing, redis, kubeMetrics, nowMs } = parts;
  const client = connect({ ...config.kubernetes, metrics: kubeMetrics() });
  const namespace = leaseNamespace(config.namespace, client.namespace);
  const { keys, replica, refresh, stop: stopReport } = followRootKeys(parts, 'controller');
  const policy = createNetworkPolicy(config.endpoints);
  const chooseRootKey = (last: string | undefined) => {
    if (last !== undefined) keys.follow(last);
    return keys.first().fingerprint;
  };
  const record = createControlRecord(redis, chooseRootKey, config.instance, config.mail !== undefined);
  const controller = createController({
    client,
    ...openDataPlane(parts, record),
    openAudit: pace => ({ ...createControlAudit(redis, pace), parts: createPartAudit(redis, pace) }),
    onAlarm: createAlarm(redis).listen,
    onReconnect: redis.onReconnect,
    nowMs,
    keys,
    replica,
    readRootKeyReports: () => readRootKeyReports(redis, nowMs()),
    mails: createMailRecord(redis),
    limits: config.limits,
    sendInvitation: config.mail && createInvitationMailer(config.mail),
    compile: {
      queueMaxBytes: config.queueMaxBytes,
      limits: config.limits,
      judgeEndpoint: url => judgeEndpoint(url, policy),
      sealEndpoint: (subscription, endpoint) => sealEndpoint(keys.first().sealKeys, subscription, endpoint),
      openHeader: createHeaderSeals(keys, systemClock.wallMs).open,
      keys,
      // The message may contain secrets.
      onUnexpected: error => log.error({ stack: framesOf(error) }, 'failed to compile the routes of a Subscription'),
    },
    secretsRole: config.secretsRole,
    instance: config.instance,
    workspaceQuota: config.workspaceQuota,
    namespace,
    identity: `${hostname()}_${randomUUID()}`,
    clock: systemClock,
    log,
    registry,
    tracing,
  });
  registerRuntimeMetrics(registry, controller);
  const { mail } = config;
  if (mail !== undefined) parts.certificates.watch('smtp', { endMs: () => readSmtpCertificateEnd(mail.server) });
  const stop = new AbortController();
  rewriteFilesAfterRestarts(redis, { log, stop: stop.signal });
  const missingRights = watchRights(parts, client, stop.signal, [
    { name: 'sluice-controller', rules: CONTROLLER_RULES },
    ...(config.secretsRole === undefined ? [{ name: 'sluice-workspace-secrets', rules: SECRETS_RULES }] : []),
    { name: 'sluice-controller', rules: LEASE_RULES, namespace },
  ]);
  watchPolicies(parts, 'controller', client, controllerProbe(namespace), stop.signal);
  const standby = watchStandby({ redis, keys, before: refresh, readStore: record.readStore }, controller, stop.signal);
  // If a status has an unknown field, the API server will keep rejecting it.
  const crds = createCrdGate({ client, clock: systemClock, log });
  const running = crds.pass(stop.signal).then(passed => (passed ? controller.run(stop.signal) : undefined));
  return {
    stop: async () => {
      stop.abort();
      await running;
      await standby.stop();
      await stopReport();
      await client.close();
    },
    impairments: () => {
      const outdated = crds.impairments();
      const { missing } = controller.readiness();
      // With old caches, a leader continues to apply the changes of the other kinds.
      const caches = missing.length > 0 ? notSynced(missing) : notSynced(controller.outdated(), 'partial');
      const working = outdated.length > 0 ? outdated : [...caches, ...controller.impairments()];
      return [...parts.redisImpairments(), ...missingRights(), ...standby.impairments(), ...working];
    },
  };
}
