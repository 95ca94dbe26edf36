import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { createAuthority, tlsArguments } from '../../../test/support/certificates.ts';
import { freePort } from '../../../test/support/free-port.ts';
import { clusterArguments, formCluster } from '../../../test/support/redis/cluster.ts';
import { startRedis } from '../../../test/support/redis/server.ts';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createRegistry } from '../../telemetry/metrics.ts';
import { createCertificateMetrics } from '../../tls/certificate-metrics.ts';
import { readRedisCertificateEnd, watchRedisCertificates } from './certificate.ts';

const log = createLogger({ level: 'silent' });
const folder = await temporaryFolder('certificate');
afterAll(folder.remove);
const authority = await createAuthority(folder.path);
const server = await authority.issue('server', 'IP:127.0.0.1', 'DNS:localhost');
const client = await authority.issue('client');
/** openssl issues certificates for two days, in whole seconds. */
const IN_TWO_DAYS = Date.now() + 2 * 86_400_000;

test('the metrics contain the expiry of the certificates of Redis and its client', async () => {
  const tlsPort = await freePort();
  const redis = await startRedis({ extra: tlsArguments(tlsPort, authority.ca, server, 'yes') });
  onTestFinished(redis.stop);
  const [certFile, keyFile] = [join(folder.path, 'own.crt'), join(folder.path, 'own.key')];
  await copyFile(client.cert, certFile);
  await copyFile(client.key, keyFile);
  const registry = createRegistry();
  const settings = { url: `rediss://127.0.0.1:${tlsPort}`, caFile: authority.ca, certFile, keyFile };
  watchRedisCertificates(settings, log, createCertificateMetrics(registry));
  const metric = async (name: string, use: string) => {
    const line = (await registry.metrics()).split('\n').find(each => each.startsWith(`${name}{use="${use}"}`));
    return Number(line?.split(' ')[1]);
  };
  for (const use of ['redis', 'redis_client']) {
    const end = () => metric('sluice_certificate_expiry_timestamp_seconds', use);
    await expect.poll(end, { timeout: 20_000 }).toBeGreaterThan(0);
    expect(Math.abs((await end()) * 1_000 - IN_TWO_DAYS)).toBeLessThan(600_000);
  }
  expect(await metric('sluice_certificate_rejected', 'redis_client')).toBe(0);
  await writeFile(keyFile, 'nothing');
  expect(await metric('sluice_certificate_rejected', 'redis_client')).toBe(1);
}, 60_000);

test('checks each node of a Cluster', async () => {
  const nodes: { port: number; busPort: number; tlsPort: number }[] = [];
  for (let index = 0; index < 3; index++) {
    const [tlsPort, busPort] = [await freePort(), await freePort()];
    const tls = [...tlsArguments(tlsPort, authority.ca, server, 'yes'), '--tls-cluster', 'yes'];
    const named = ['--cluster-announce-hostname', 'localhost', '--cluster-preferred-endpoint-type', 'hostname'];
    const node = await startRedis({ extra: [...clusterArguments(busPort), ...tls, ...named] });
    onTestFinished(node.stop);
    nodes.push({ port: node.port, busPort, tlsPort });
  }
  await formCluster(nodes);
  const own = { caFile: authority.ca, certFile: client.cert, keyFile: client.key };
  const end = await readRedisCertificateEnd({ url: `rediss://localhost:${nodes[0]?.tlsPort}`, ...own }, log);
  expect(Math.abs(end - IN_TWO_DAYS)).toBeLessThan(600_000);
}, 60_000);

test('does nothing without TLS', async () => {
  const watched: string[] = [];
  watchRedisCertificates({ url: 'redis://127.0.0.1:6379' }, log, { watch: use => void watched.push(use) });
  expect(watched).toEqual([]);
});
