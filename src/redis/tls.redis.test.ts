import { copyFileSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { afterAll, expect, onTestFinished, test, vi } from 'vitest';
import { type Authority, createAuthority, tlsArguments } from '../../test/support/certificates.ts';
import { freePort } from '../../test/support/free-port.ts';
import { clusterArguments, formCluster } from '../../test/support/redis/cluster.ts';
import { type RedisServer, startRedis } from '../../test/support/redis/server.ts';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { createLogger } from '../telemetry/log.ts';
import { findRedis } from './connection/connections.ts';
import type { RedisSettings } from './connection/redis-settings.ts';
import { type LateRedis, openRedis } from './late-client.ts';
import { hearNews } from './testing/heard.ts';

const SOON = { timeout: 20_000 };
const log = createLogger({ level: 'silent' });
const folder = await temporaryFolder('tls');
afterAll(folder.remove);
const authority = await createAuthority(folder.path);
const stranger = await createAuthority(folder.path, 'stranger');
const byAddress = await authority.issue('by-address', 'IP:127.0.0.1');
const byName = await authority.issue('by-name', 'DNS:redis.example');
const client = await authority.issue('client');

async function start(
  certificate = byAddress,
  clients: 'yes' | 'no' = 'no',
  { ca }: Authority = authority,
): Promise<{ server: RedisServer; tlsPort: number; url: string }> {
  const tlsPort = await freePort();
  const server = await startRedis({ extra: tlsArguments(tlsPort, ca, certificate, clients) });
  onTestFinished(server.stop);
  return { server, tlsPort, url: `rediss://127.0.0.1:${tlsPort}` };
}

function open(settings: RedisSettings): LateRedis {
  const redis = openRedis({ ...settings, log });
  onTestFinished(() => redis.close());
  return redis;
}

const untilReported = (redis: LateRedis, text: string) =>
  vi.waitFor(() => expect(redis.impairments()[0]?.message).toContain(text), SOON);

test('only connects to a Redis with a certificate of a private authority if the authority is configured', async () => {
  const { url } = await start();
  const redis = open({ url, caFile: authority.ca });
  await redis.opened;
  expect(await redis.client.call('set', 'a', '1')).toBe('OK');

  await untilReported(open({ url }), 'Set SLUICE_REDIS_CA_FILE');
  await untilReported(open({ url, caFile: stranger.ca }), 'Set SLUICE_REDIS_CA_FILE');
});

test('checks the name of the server: the host, or SLUICE_REDIS_SERVER_NAME', async () => {
  const { url } = await start(byName);
  await untilReported(open({ url, caFile: authority.ca }), 'SLUICE_REDIS_SERVER_NAME');
  await untilReported(open({ url, caFile: authority.ca, serverName: 'other.example' }), 'SLUICE_REDIS_SERVER_NAME');
  await open({ url, caFile: authority.ca, serverName: 'redis.example' }).opened;
}, 60_000);

test('a Redis that requires a client certificate receives it on every connection, including the new one after a rotation', async () => {
  const { server, url } = await start(byAddress, 'yes');
  const rotating = { cert: `${folder.path}/rotating.crt`, key: `${folder.path}/rotating.key` };
  const use = (files: typeof client) => {
    copyFileSync(files.cert, rotating.cert);
    copyFileSync(files.key, rotating.key);
  };
  use(await stranger.issue('uninvited'));
  const settings = { url, caFile: authority.ca, certFile: rotating.cert, keyFile: rotating.key };
  const redis = open(settings);
  let listening = 0;
  redis.client.subscribe(
    ['news'],
    () => {},
    () => listening++,
  );
  await untilReported(redis, 'SLUICE_REDIS_CERT_FILE');
  await untilReported(open({ url, caFile: authority.ca }), 'SLUICE_REDIS_CERT_FILE');

  use(client);
  await redis.opened;
  await vi.waitFor(() => expect(listening).toBe(1), SOON);

  // From now on, Redis only accepts clients of the other authority.
  await server.command('CONFIG', 'SET', 'tls-ca-cert-file', stranger.ca);
  await server.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  await untilReported(redis, 'SLUICE_REDIS_CERT_FILE');
  use(await stranger.issue('invited'));
  await vi.waitFor(() => expect(redis.impairments()).toEqual([]), SOON);
  await server.command('CLIENT', 'KILL', 'TYPE', 'pubsub');
  await vi.waitFor(() => expect(listening).toBe(2), SOON);
});

test('connects to a Cluster with TLS using the names of its nodes, and subscribes there', async () => {
  const localhost = await authority.issue('localhost', 'DNS:localhost');
  const nodes: { port: number; busPort: number; tlsPort: number }[] = [];
  for (let index = 0; index < 3; index++) {
    const [tlsPort, busPort] = [await freePort(), await freePort()];
    const tls = [...tlsArguments(tlsPort, authority.ca, localhost, 'yes'), '--tls-cluster', 'yes'];
    const named = ['--cluster-announce-hostname', 'localhost', '--cluster-preferred-endpoint-type', 'hostname'];
    const server = await startRedis({ extra: [...clusterArguments(busPort), ...tls, ...named] });
    onTestFinished(server.stop);
    nodes.push({ port: server.port, busPort, tlsPort });
  }
  await formCluster(nodes);
  const url = nodes.map(({ tlsPort }) => `rediss://localhost:${tlsPort}`).join(',');
  const redis = open({ url, caFile: authority.ca, certFile: client.cert, keyFile: client.key });
  const heard = hearNews(redis.client);
  await redis.opened;
  expect(redis.client.cluster).toBe(true);
  const keys = Array.from({ length: 30 }, (_, i) => `key:${i}`);
  expect(new Set(await Promise.all(keys.map(key => redis.client.call('set', key, '1'))))).toEqual(new Set(['OK']));
  await vi.waitFor(() => expect(heard).toEqual(['listening']), SOON);
  await redis.client.publish('news', 'x');
  await vi.waitFor(() => expect(heard).toEqual(['listening', 'x']), SOON);
}, 60_000);

test('never connects without TLS if the files cannot be used for the first connection', async () => {
  const heard: string[] = [];
  const server = createServer(socket => {
    socket.on('error', () => {});
    socket.on('data', data => {
      heard.push(data.toString('latin1'));
      socket.destroy();
    });
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { cert: certFile, key: keyFile } = await authority.issue('vanishing');
  rmSync(certFile);
  const { port } = server.address() as AddressInfo;
  const settings = { url: `rediss://sluice:secret@127.0.0.1:${port}`, certFile, keyFile };
  const missing = `SLUICE_REDIS_CERT_FILE: ENOENT: ${certFile}`;
  await expect(findRedis(settings, log)).rejects.toThrow(missing);
  const redis = open(settings);
  await untilReported(redis, `(SLUICE_REDIS_URL) cannot be used: ${missing}.`);
  expect(redis.impairments()[0]?.message.match(/ENOENT/g)).toHaveLength(1);
  expect(heard).toEqual([]);
});
