import type { TestProject } from 'vitest/node';
import { openClusterPool } from '../support/kubernetes/cluster-pool.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The address of a pool of clusters without the Sluice kinds, in which tests install Sluice. */
    emptyClusterPool: string;
  }
}

/** A global setup of the project `chart`. Lends clusters to the test files. The first file starts the first cluster. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const pool = await openClusterPool(async () => {});
  project.provide('emptyClusterPool', pool.url);
  return pool.stop;
}
