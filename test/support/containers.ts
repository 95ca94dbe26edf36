import { K3sContainer } from '@testcontainers/k3s';
import { RedisContainer } from '@testcontainers/redis';
import { GenericContainer, getContainerRuntimeClient } from 'testcontainers';
import { freePorts } from './free-port.ts';

/** Starts Redis and Kubernetes as containers, the fallback without binaries or servers. */

const REDIS_IMAGE = 'redis:7.2-alpine';
const K3S_IMAGE = 'rancher/k3s:v1.36.3-k3s1';

/** Returns whether a container daemon is responding. */
export async function hasContainers(): Promise<boolean> {
  return getContainerRuntimeClient().then(
    () => true,
    () => false,
  );
}

export async function startRedisContainer(): Promise<{ url: string; stop: () => Promise<void> }> {
  const container = await new RedisContainer(REDIS_IMAGE).start();
  return {
    url: container.getConnectionUrl(),
    stop: async () => {
      await container.stop();
    },
  };
}

/**
 * Starts three empty nodes in one container. Their ports are the same inside and outside of the container, so the
 * announced addresses are valid for both. The nodes do not form a cluster yet.
 */
export async function startClusterNodesContainer(
  argumentsOf: (busPort: number) => readonly string[],
): Promise<{ nodes: { port: number; busPort: number }[]; stop: () => Promise<void> }> {
  const ports = await freePorts(6);
  const nodes = ports.slice(0, 3).map((port, index) => ({ port, busPort: ports[index + 3] ?? 0 }));
  const commands = nodes.map(({ port, busPort }) =>
    ['redis-server', '--port', port, '--protected-mode', 'no', '--cluster-config-file', `nodes-${port}.conf`]
      .concat(argumentsOf(busPort))
      .join(' '),
  );
  const container = await new GenericContainer(REDIS_IMAGE)
    .withCommand(['sh', '-c', `${commands.join(' & ')} & wait`])
    .withExposedPorts(...nodes.map(({ port }) => ({ container: port, host: port })))
    .start();
  return {
    nodes,
    stop: async () => {
      await container.stop();
    },
  };
}

/** @returns the kubeconfig of an administrator, as text */
export async function startK3sContainer(): Promise<{ kubeconfig: string; stop: () => Promise<void> }> {
  const container = await new K3sContainer(K3S_IMAGE).start();
  return {
    kubeconfig: container.getKubeConfig(),
    stop: async () => {
      await container.stop();
    },
  };
}
