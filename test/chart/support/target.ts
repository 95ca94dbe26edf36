import { expect, inject } from 'vitest';
import { borrowCluster } from '../../support/kubernetes/borrowed-cluster.ts';
import type { Cluster } from '../../support/kubernetes/cluster.ts';
import { type TemporaryFolder, temporaryFolder } from '../../support/temporary-folder.ts';
import { type Helm, openHelm, outputOf } from './helm.ts';

/** A cluster in which the chart is installed, along with helm and a folder. */
export interface Target {
  readonly cluster: Cluster;
  readonly helm: Helm;
  readonly folder: TemporaryFolder;
  /** Returns the output of kubectl. @throws with standard error if it failed */
  readonly kubectl: (...args: string[]) => Promise<string>;
  /** Creates an account that the policies deny to the facade, as a dry run. @returns the error message */
  readonly refusalOf: (account: string) => Promise<string>;
  /** Waits until the policies deny the request because the API server reads them once a second. */
  readonly isRefused: (account: string) => Promise<void>;
  readonly stop: () => Promise<void>;
}

/** Borrows a separate cluster because the kinds and the roles have the same names in every installation. */
export async function openTarget(options: Parameters<typeof borrowCluster>[1] = {}): Promise<Target> {
  const borrowing = borrowCluster(inject('emptyClusterPool'), options);
  const [cluster, helm, folder] = await Promise.all([borrowing, openHelm(), temporaryFolder('install')]);

  async function refusalOf(account: string): Promise<string> {
    const object = {
      apiVersion: 'sluice.dev/v1alpha1',
      kind: 'Account',
      metadata: { name: 'never-stored' },
      spec: { plan: 'Metered', owners: [{ issuer: 'https://issuer.example', subject: 'nobody', role: 'Owner' }] },
    };
    const args = ['create', '--dry-run=server', `--as=system:serviceaccount:${account}`, '-f', '-'];
    return (await cluster.kubectl(args, { stdin: JSON.stringify(object) })).stderr;
  }

  return {
    cluster,
    helm,
    folder,
    kubectl: async (...args) => outputOf(await cluster.kubectl(args)),
    refusalOf,
    isRefused: async account =>
      expect
        .poll(() => refusalOf(account), { timeout: 20_000, interval: 250 })
        .toContain('can only create accounts with the plan'),
    stop: async () => {
      await cluster.stop();
      await folder.remove();
    },
  };
}
