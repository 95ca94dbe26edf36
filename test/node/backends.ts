import { readFile } from 'node:fs/promises';
import { expect } from 'vitest';
import { createAuthority, tlsArguments } from '../support/certificates.ts';
import { freePort } from '../support/free-port.ts';
import { startRedisCluster } from '../support/redis/cluster.ts';
import { startSentinels } from '../support/redis/sentinel.ts';
import { DOCUMENTED, startRedis } from '../support/redis/server.ts';
import { denialsOn, PASSWORD } from '../support/redis/users.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** A Redis outside of the cluster, and how the chart connects to it. */
export type Backend = {
  /** Value `redis` of the chart. */
  readonly values: object;
  /** The Secrets referenced by the values, without a namespace. */
  readonly secrets: readonly object[];
  /** Checks how the pods use this Redis after a delivery. */
  readonly verify?: () => Promise<void>;
  readonly stop: () => Promise<void>;
};

function secret(name: string, stringData: Readonly<Record<string, string>>): object {
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name }, stringData };
}

/** Starts a Redis Cluster. @param host address of this machine */
export async function startClusterBackend(host: string): Promise<Backend> {
  const { url, stop } = await startRedisCluster({ host });
  return { values: { url }, secrets: [], stop };
}

/** Starts a Redis with a user for each role. @param host address of this machine */
export async function startUsersBackend(host: string): Promise<Backend> {
  const reachable = ['--bind', '127.0.0.1', host, '--protected-mode', 'no'];
  const server = await startRedis({ appendonly: true, extra: [...DOCUMENTED, ...reachable], users: [] });
  const keys = ['controller', 'facade', 'ingress', 'dispatcher', 'uninstall'];
  return {
    values: { url: `redis://${host}:${server.port}`, usersSecret: 'redis-users' },
    secrets: [secret('redis-users', Object.fromEntries(keys.map(key => [key, PASSWORD])))],
    verify: async () => {
      const clients = (await server.command('CLIENT', 'LIST')) as string;
      const users = [...clients.matchAll(/ user=(sluice-\S+)/g)].map(([, user = '']) => user);
      expect([...new Set(users)].toSorted()).toEqual(['sluice-controller', 'sluice-dispatcher', 'sluice-ingress']);
      expect(await denialsOn(server)).toEqual([]);
    },
    stop: server.stop,
  };
}

/**
 * Starts a master with three Sentinels, with TLS, client certificates, and passwords in files.
 *
 * @param host address of this machine
 */
export async function startSentinelBackend(host: string): Promise<Backend> {
  const folder = await temporaryFolder('backend');
  const authority = await createAuthority(folder.path);
  const [server, client] = [await authority.issue('server', `IP:${host}`), await authority.issue('client')];
  const tls = (port: number) => tlsArguments(port, authority.ca, server, 'yes');
  const masterPort = await freePort();
  const user = ['--user', 'sluice', 'on', '>secret', '~*', '&*', '+@all'];
  const reachable = ['--bind', '127.0.0.1', host, '--protected-mode', 'no'];
  const master = await startRedis({
    appendonly: true,
    extra: [...DOCUMENTED, ...user, ...reachable, ...tls(masterPort)],
  });
  const ports = [await freePort(), await freePort(), await freePort()];
  const sentinels = await startSentinels({
    name: 'main',
    master: masterPort,
    host,
    replicas: 0,
    extra: index => [
      'protected-mode no',
      ...tls(ports[index] as number)
        .join(' ')
        .split(/ ?--/)
        .slice(1),
      'user watcher on >watching ~* &* +@all',
    ],
  });
  return {
    values: {
      url: `rediss+sentinel://sluice@${ports.map(port => `${host}:${port}`).join(',')}/main`,
      passwordSecret: 'redis-password',
      tls: { caSecret: 'redis-ca', clientSecret: 'redis-client' },
      sentinel: { username: 'watcher', passwordSecret: 'sentinel-password' },
    },
    secrets: [
      secret('redis-password', { password: 'secret' }),
      secret('sentinel-password', { password: 'watching' }),
      secret('redis-ca', { 'ca.crt': await readFile(authority.ca, 'utf8') }),
      secret('redis-client', {
        'tls.crt': await readFile(client.cert, 'utf8'),
        'tls.key': await readFile(client.key, 'utf8'),
      }),
    ],
    stop: async () => {
      await sentinels.stop();
      await master.stop();
      await folder.remove();
    },
  };
}
