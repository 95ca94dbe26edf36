import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { CLUSTER_BINARIES, ensureBinaries } from './kubernetes/binaries.ts';
import { openClusterPool } from './kubernetes/cluster-pool.ts';
import { applyDefinitions } from './kubernetes/crds.ts';
import { bundledProgram } from './program.ts';
import { requireRedisServer } from './redis/server.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The address of the pool of clusters, which contain the Sluice kinds and the `sluice-system` namespace. */
    clusterPool: string;
  }
}

const CRDS = join(import.meta.dirname, '..', '..', 'crds');

/**
 * Opens a pool of clusters with the Sluice kinds and the `sluice-system` namespace. Builds missing binaries first.
 */
export async function openPreparedPool(): Promise<{ readonly url: string; readonly stop: () => Promise<void> }> {
  await requireRedisServer();
  await ensureBinaries([...CLUSTER_BINARIES, 'kube-controller-manager']);
  return openClusterPool(async ({ kubeconfig, kubectl }) => {
    await applyDefinitions(kubeconfig, CRDS);
    const { code, stderr } = await kubectl(['create', 'namespace', 'sluice-system']);
    if (code !== 0) throw new Error(stderr);
  });
}

/**
 * The global setup of the projects `system` and `scale`. Builds missing binaries once, outside of the timeout of a
 * test, and lends clusters to the test files.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  await bundledProgram();
  const pool = await openPreparedPool();
  project.provide('clusterPool', pool.url);
  return pool.stop;
}
