import { TLSSocket } from 'node:tls';
import { Cluster, type Redis } from 'ioredis';
import type { Logger } from '../../telemetry/log.ts';
import type { CertificateMetrics } from '../../tls/certificate-metrics.ts';
import { endOf } from '../../tls/pem-files.ts';
import { connectFirst, findRedis } from './connections.ts';
import { type RedisSettings, readRedisSecrets } from './redis-settings.ts';
import { parseRedisUrl } from './redis-url.ts';

/** Adds the certificates of Redis and its client (if there are any) to the metrics. */
export function watchRedisCertificates(settings: RedisSettings, log: Logger, metrics: CertificateMetrics): void {
  if (!parseRedisUrl(settings.url).tls) return;
  metrics.watch('redis', { endMs: () => readRedisCertificateEnd(settings, log) });
  if (settings.certFile === undefined) return;
  const read = () => readRedisSecrets(settings, [])?.cert;
  metrics.watch('redis_client', {
    endMs: () => {
      const cert = read();
      return cert === undefined ? undefined : endOf(cert);
    },
    rejected: () => read() === undefined,
  });
}

/**
 * Connects to Redis, or to all nodes of a Cluster. Returns the time at which the first of their certificates expires,
 * in milliseconds since 1970. Sentinel certificates are not checked.
 *
 * @throws if Redis does not respond or does not use TLS
 */
export async function readRedisCertificateEnd(settings: RedisSettings, log: Logger): Promise<number> {
  const { create } = await findRedis(settings, log);
  const redis = create();
  redis.on('error', error => log.debug({ err: error as Error }, 'cannot read the Redis certificate'));
  try {
    await connectFirst(redis);
    const nodes = redis instanceof Cluster ? redis.nodes('all') : [redis];
    const ends = await Promise.all(nodes.map(endOfNode));
    return Math.min(...ends);
  } finally {
    redis.disconnect();
  }
}

async function endOfNode(node: Redis): Promise<number> {
  // The nodes of a Cluster will be connected when we need them.
  if (node.status === 'wait') await node.connect();
  if (!(node.stream instanceof TLSSocket)) throw new Error('this Redis connection does not use TLS');
  return Date.parse(node.stream.getPeerCertificate().valid_to);
}
