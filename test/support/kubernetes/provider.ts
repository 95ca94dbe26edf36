import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { hasContainers, startK3sContainer } from '../containers.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { MissingBinaries } from './binaries.ts';
import { startCluster } from './cluster.ts';

/**
 * Provides a cluster for a test run: `TEST_KUBECONFIG`, a cluster started from `KUBEBUILDER_ASSETS`, the cache, or a
 * build, or K3s in a container.
 * @returns the path of an administrator's kubeconfig
 * @throws MissingBinaries, whose message says how to get a cluster
 */
export async function provideKubernetes(): Promise<{ kubeconfig: string; stop: () => Promise<void> }> {
  const given = process.env.TEST_KUBECONFIG;
  if (given) return { kubeconfig: given, stop: async () => {} };
  try {
    return await startCluster();
  } catch (error) {
    if (!(error instanceof MissingBinaries) || !(await hasContainers())) throw error;
    return startContainer();
  }
}

async function startContainer(): Promise<{ kubeconfig: string; stop: () => Promise<void> }> {
  const folder = await temporaryFolder('k3s');
  const container = await startK3sContainer();
  const kubeconfig = join(folder.path, 'kubeconfig');
  await writeFile(kubeconfig, container.kubeconfig, { mode: 0o600 });
  return {
    kubeconfig,
    stop: async () => {
      await container.stop();
      await folder.remove();
    },
  };
}
