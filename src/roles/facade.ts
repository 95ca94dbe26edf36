import { readBalance } from '../accounts/balance.ts';
import { ConfigError } from '../config/config.ts';
import type { OidcConfig } from '../config/oidc-environment.ts';
import { VERSION } from '../config/version.ts';
import { createHeaderSeals } from '../core/delivery/header-seal.ts';
import { auditLine, createAuditTrail } from '../facade/audit/audit-trail.ts';
import { createIssuers } from '../facade/auth/issuers.ts';
import { countOperations } from '../facade/counted-operations.ts';
import { createFacadeMetrics } from '../facade/facade-metrics.ts';
import { createFacade } from '../facade/objects/facade.ts';
import { createRedisShares } from '../facade/objects/redis-shares.ts';
import { createResealing } from '../facade/resources/subscriptions/resealing.ts';
import { createFacadeServer } from '../facade/server.ts';
import { createClientAddress, createConnectionAddress } from '../http/client-address.ts';
import { createKeyedCalls } from '../idempotency/keyed-calls.ts';
import { facadeProbe } from '../kube/access/policy-probes.ts';
import { FACADE_RULES } from '../kube/access/rights.ts';
import { connect } from '../kube/client.ts';
import { createMailReader } from '../record/mail-reader.ts';
import { watchRootKey } from '../record/root-key-watch.ts';
import { type AuditDestination, openAuditDestination } from '../telemetry/audit-destination.ts';
import { systemClock } from '../time/clock.ts';
import { openDataPlane } from './facade-data-plane.ts';
import { anyAddress, listenAt } from './listening.ts';
import { notSynced, type Parts, type Running } from './parts.ts';
import { watchPolicies } from './policies.ts';
import { watchRights } from './rights.ts';
import { followRootKeys } from './root-keys.ts';
import { followServedCertificate } from './served-tls.ts';

export async function startFacade(parts: Parts): Promise<Running> {
  const { config, log, registry, tracing, redis, kubeMetrics, nowMs } = parts;
  const { keys, refresh, stop: stopReport } = followRootKeys(parts, 'facade');
  const keyWatch = await watchRootKey({ redis, keys, before: refresh });
  const client = connect({ ...config.kubernetes, metrics: kubeMetrics() });
  const metrics = createFacadeMetrics(registry);
  const destination = await openAudit(parts, metrics.audited);
  const audit = createAuditTrail({ rootKey: keys.oldest().secret, clock: systemClock, write: destination.write });
  const shares = createRedisShares(systemClock, () => metrics.limited('store'));
  const objects = { caches: () => facade.caches, wallMs: systemClock.wallMs };
  const plane = openDataPlane(redis, nowMs, objects, shares);
  const facade = createFacade({
    client,
    clock: systemClock,
    gates: plane.gates,
    inboxes: plane.inboxes,
    routing: plane.routing,
    traffic: plane.traffic,
    ...countOperations(plane, metrics.did),
    readBalance: account => readBalance(redis, account),
    keyedCalls: createKeyedCalls(redis, keys, nowMs),
    keys,
    mails: createMailReader(redis),
    issuers: (config.oidc as OidcConfig).issuers,
    requireInvitedEmail: config.requireInvitedEmail,
    headerSeals: createHeaderSeals(keys, systemClock.wallMs),
    instance: config.instance,
    limitPolicy: config.limits,
    invitedLimits: config.invitedLimits,
    nowMs,
    log,
  });
  const stop = new AbortController();
  const watching = facade.caches.run(stop.signal);
  const resealing = createResealing(facade).run(stop.signal);
  const missingRights = watchRights(parts, client, stop.signal, [{ name: 'sluice-facade', rules: FACADE_RULES }]);
  watchPolicies(parts, 'facade', client, facadeProbe(), stop.signal);
  const issuers = followIssuers(parts, stop.signal);
  const server = createFacadeServer({
    facade,
    authentication: issuers.authentication,
    metrics,
    audit,
    tracing,
    certificate: config.facadeCertificate?.first,
    addressOf: config.trustedProxies && createClientAddress(config.trustedProxies),
    connectionOf: config.trustedProxies && createConnectionAddress(config.trustedProxies),
    version: VERSION,
    servesReference: config.servesReference,
  });
  const host = await anyAddress();
  const port = await listenAt('SLUICE_FACADE_PORT', config.facadePort, () => server.listen(config.facadePort, host));
  log.info({ port }, 'facade listens');
  const stopFollowing = followServedCertificate(parts, 'facade', config.facadeCertificate, server);
  return {
    drain: server.drain,
    stop: async () => {
      stopFollowing();
      await server.close();
      audit.flush();
      await destination.close();
      keyWatch.stop();
      await stopReport();
      stop.abort();
      await Promise.all([watching, resealing]);
      await client.close();
    },
    impairments: () => [
      // Objects can be read and written without Redis, but not with one of another version or installation. Nobody else
      // uses the facade Redis user.
      ...parts.redisImpairments().filter(({ reason, cause }) => cause === 'settings' || reason === 'RedisAccessDenied'),
      ...keyWatch.impairments(),
      ...destination.impairments(),
      ...missingRights(),
      ...issuers.impairments(),
      ...notSynced(facade.caches.staleKinds()),
    ],
  };
}

/** Reads the keys of the issuers until `stop` is aborted. */
function followIssuers({ config, log }: Parts, stop: AbortSignal) {
  const oidc = config.oidc as OidcConfig;
  const keys = createIssuers({ ...oidc, nowMs: systemClock.nowMs, log });
  void keys.watch(systemClock, stop);
  return {
    authentication: { ...oidc, log, keys },
    // Other roles in this process don't need the issuers, so they should remain available.
    impairments: () => keys.impairments(config.roles.length === 1),
  };
}

/** @throws ConfigError if the destination of audit lines cannot be written to */
async function openAudit(
  { config, log }: Parts,
  count: (result: 'written' | 'lost', lines: number) => void,
): Promise<AuditDestination> {
  const lostLine = (lost: number) => auditLine(systemClock.wallMs(), { msg: 'lines lost', lost });
  try {
    return await openAuditDestination({ target: config.audit, lostLine, log, count });
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException;
    throw new ConfigError(
      `SLUICE_AUDIT_FILE: cannot be opened for writing (${code}). Specify the path of a file that the facade can create or append to, or fd: followed by the number of an open file descriptor`,
    );
  }
}
