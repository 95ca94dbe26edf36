import { createPartIngressMetrics } from '../dataplane/ingress/ingress-metrics.ts';
import { createSandboxRoutes } from '../dataplane/ingress/sandbox/sandbox-routes.ts';
import { createIngress } from '../dataplane/ingress/server.ts';
import { createMemorySource } from '../dataplane/memory-source.ts';
import { createPartIngestion } from '../dataplane/part-ingestion.ts';
import { createSandboxDesk } from '../dataplane/sandbox/desk.ts';
import { createHintIndex } from '../hints/hints.ts';
import { createClientAddress, createConnectionAddress } from '../http/client-address.ts';
import { anyAddress, listenAt } from './listening.ts';
import { type Parts, type Running } from './parts.ts';
import { followServedCertificate } from './served-tls.ts';

export async function startIngress(parts: Parts): Promise<Running> {
  const { config, log, registry, tracing, redis, keysVersion, nowMs, alarm } = parts;
  const sandbox = createSandboxDesk({
    redis,
    lower: createHintIndex(redis, 's').lower,
    nowMs,
  });
  const ingress = createIngress({
    store: createPartIngestion({ redis, nowMs, alarm, onRouted: createPartIngressMetrics(registry) }),
    addRoutes: createSandboxRoutes(sandbox),
    addressOf: config.trustedProxies && createClientAddress(config.trustedProxies),
    connectionOf: config.trustedProxies && createConnectionAddress(config.trustedProxies),
    rates: config.ingressRates,
    memorySource: createMemorySource(redis),
    keysVersion,
    registry,
    tracing,
    certificate: config.ingressCertificate?.first,
    log,
  });
  const host = await anyAddress();
  const port = await listenAt('SLUICE_INGRESS_PORT', config.ingressPort, () =>
    ingress.listen(config.ingressPort, host),
  );
  log.info({ port }, 'ingress listens');
  const stopFollowing = followServedCertificate(parts, 'ingress', config.ingressCertificate, ingress);
  const stop = () => {
    stopFollowing();
    return ingress.close();
  };
  return { drain: ingress.drain, stop, impairments: parts.redisImpairments };
}
