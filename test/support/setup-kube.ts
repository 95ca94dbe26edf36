import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { applyDefinitions } from './kubernetes/crds.ts';
import { provideKubernetes } from './kubernetes/provider.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /**
     * Path of an administrator's kubeconfig for a cluster with the kinds of Sluice. The whole run shares it: use
     * separate namespaces, or `startCluster()` if you must kill it.
     */
    kubeconfig: string;
  }
}

const CRDS = join(import.meta.dirname, '..', '..', 'crds');

/** Global set-up of the project `kube`. */
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
