import { CLUSTER_BINARIES, ensureBinaries } from './kubernetes/binaries.ts';
import { requireRedisServer } from './redis/server.ts';

/**
 * Global set-up of the project `system`, whose tests start and kill clusters and Redis servers of their own: builds
 * what is missing here, once, and not under a test's deadline.
 */
export async function setup(): Promise<void> {
  await requireRedisServer();
  await ensureBinaries([...CLUSTER_BINARIES, 'kube-controller-manager']);
}
