import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { applyDefinitions } from './kubernetes/crds.ts';
import { provideKubernetes } from './kubernetes/provider.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /**
     * The path of an administrator's kubeconfig for a cluster with the Sluice kinds. All tests of a run share it:
     * use separate namespaces, or `startCluster()` if you have to kill a cluster.
     */
    kubeconfig: string;
  }
}

const CRDS = join(import.meta.dirname, '..', '..', 'crds');

/** The global setup of the project `kube`. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const cluster = await provideKubernetes();
  try {
    await applyDefinitions(cluster.kubeconfig, CRDS);
  } catch (error) {
    await cluster.stop();
    throw error;
  }
  project.provide('kubeconfig', cluster.kubeconfig);
  return cluster.stop;
}
