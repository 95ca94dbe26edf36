import { createIngestion } from '../dataplane/ingestion.ts';
import { createPartIngressMetrics } from '../dataplane/ingress/ingress-metrics.ts';
import { createIngress } from '../dataplane/ingress/server.ts';
import type { IngressStore } from '../dataplane/ingress/store.ts';
import { createPartIngestion } from '../dataplane/part-ingestion.ts';
import { createSandboxDesk } from '../dataplane/sandbox/desk.ts';
import { createHintIndex } from '../redis/hints.ts';
import { createIngressOperations } from '../redis/ingress-store.ts';
import { anyAddress, listenAt } from './listening.ts';
import { type Parts, type Running } from './parts.ts';
import { openSandboxSource } from './sandbox.ts';
import { followServedCertificate } from './served-tls.ts';

/** Opens where events are stored. */
function openStore({ config, registry, redis, nowMs, alarm }: Parts): IngressStore {
  if (config.layout === 'parts') {
    return createPartIngestion({ redis, nowMs, alarm, onRouted: createPartIngressMetrics(registry) });
  }
  return createIngestion({
    operations: createIngressOperations(redis, nowMs, alarm),
    lower: createHintIndex(redis, 'r').lower,
    nowMs,
  });
}

export async function startIngress(parts: Parts): Promise<Running> {
  const { config, log, registry, tracing, redis, nowMs } = parts;
  const sandbox = createSandboxDesk({
    redis,
    source: openSandboxSource(config.layout, redis),
    lower: createHintIndex(redis, 's').lower,
    nowMs,
  });
  const ingress = createIngress({
    store: openStore(parts),
    sandbox,
    askMasters: redis.callAll,
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
