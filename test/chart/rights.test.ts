import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import {
  bindingRules,
  CONTROLLER_RULES,
  FACADE_RULES,
  LEASE_RULES,
  type PolicyRule,
  SECRETS_RULES,
  uninstallRules,
} from '../../src/kube/access/rights.ts';
import { connect, type KubeClient } from '../../src/kube/client.ts';
import { kubeconfigOf } from '../support/kubernetes/permissions.ts';
import { outputOf } from './support/helm.ts';
import { type InstalledRights, installRights, linesOf, listRights } from './support/rights.ts';
import { VALUE_SETS } from './support/value-sets.ts';

/** A policy is in effect after a second. Each try is a command. */
const SOON = { timeout: 20_000, interval: 250 };

interface Account {
  readonly role: string;
  /** Cluster-wide permissions, and permissions that are only granted in the release namespace. */
  readonly everywhere: readonly PolicyRule[];
  readonly inside?: readonly PolicyRule[];
}

/** Returns the service accounts that have a token, by set of values. */
const ACCOUNTS: Readonly<Record<string, readonly Account[]>> = {
  minimal: [
    { role: 'controller', everywhere: [...CONTROLLER_RULES, ...SECRETS_RULES], inside: LEASE_RULES },
    { role: 'facade', everywhere: FACADE_RULES },
    // The Job that runs before `helm uninstall`.
    { role: 'uninstall', everywhere: uninstallRules('rights-minimal-workspace-secrets'), inside: LEASE_RULES },
  ],
  'all in one': [
    {
      role: 'all',
      everywhere: [...CONTROLLER_RULES, ...SECRETS_RULES, ...FACADE_RULES],
      inside: LEASE_RULES,
    },
  ],
  'namespaced secrets': [
    {
      role: 'controller',
      everywhere: [...CONTROLLER_RULES, ...bindingRules('rights-namespaced-secrets-workspace-secrets')],
      inside: LEASE_RULES,
    },
    { role: 'facade', everywhere: FACADE_RULES },
  ],
};

describe.each(Object.entries(ACCOUNTS))('%s: kubectl auth can-i --list', (name, accounts) => {
  const release = `rights-${name.replaceAll(' ', '-')}`;
  const clients: KubeClient[] = [];
  let rights: InstalledRights;
  /** The permissions of all service accounts. */
  let anybody: string[];

  beforeAll(async () => {
    rights = await installRights(inject('kubeconfig'), release, VALUE_SETS[name] ?? {});
    outputOf(await rights.kubectl(['create', 'serviceaccount', 'anybody', '-n', release]));
    const client = connect({ kubeconfig: await kubeconfigOf({ kubectl: rights.kubectl }, 'anybody', release) });
    clients.push(client);
    anybody = await listRights(client, release);
  });

  afterAll(async () => {
    await Promise.all(clients.map(client => client.close()));
  });

  test.each(accounts)(
    '$role has the permissions in the list, and no others',
    async ({ role, everywhere, inside = [] }) => {
      const client = await rights.open(role);
      clients.push(client);
      const own = async (namespace: string) =>
        (await listRights(client, namespace)).filter(line => !anybody.includes(line));
      // The authorizer learns of roles and bindings by a watch.
      await expect.poll(() => own('default'), { timeout: 20_000 }).toEqual(linesOf(everywhere));
      await expect.poll(() => own(release), { timeout: 20_000 }).toEqual(linesOf([...everywhere, ...inside]));
    },
  );

  test('the roles for tenants can only be bound in workspaces', async () => {
    const workspace = `${release}-workspace`;
    outputOf(await rights.kubectl(['create', 'namespace', workspace]));
    outputOf(await rights.kubectl(['label', 'namespace', workspace, `sluice.dev/workspace=${workspace}`]));
    const bind = (role: string, namespace: string) => {
      const args = [`--clusterrole=${release}-${role}`, '--user=eve', '-n', namespace, '--dry-run=server'];
      return rights.kubectl(['create', 'rolebinding', role, ...args]);
    };
    const denied = expect.stringContaining(`ValidatingAdmissionPolicy '${release}-tenant-bindings'`);
    const inRelease = () => bind('tenant-view', release);
    await expect.poll(inRelease, SOON).toMatchObject({ code: 1, stderr: denied });
    for (const role of ['tenant-edit', 'tenant-secrets', 'tenant-view']) {
      expect(await bind(role, 'kube-system')).toMatchObject({ code: 1, stderr: denied });
      expect(await bind(role, workspace)).toMatchObject({ code: 0 });
    }
    expect(await bind('admin', release)).toMatchObject({ code: 0 });
  });

  test('the Lease of a controller can only be written by those who can list it in all namespaces', async () => {
    const namespace = `${release}-rival`;
    outputOf(await rights.kubectl(['create', 'namespace', namespace]));
    const rule = ['--verb=create,update,patch', '--resource=leases.coordination.k8s.io'];
    outputOf(await rights.kubectl(['create', 'role', 'leases', ...rule, '-n', namespace]));
    outputOf(await rights.kubectl(['create', 'rolebinding', 'eve', '--role=leases', '--user=eve', '-n', namespace]));
    const create = (user: string, where: string, metadata: object) => {
      const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec: { holderIdentity: user } };
      const args = ['create', '-f', '-', `--as=${user}`, '-n', where, '--dry-run=server'];
      return rights.kubectl(args, { stdin: JSON.stringify(lease) });
    };
    const labels = { 'sluice.dev/instance': '' };
    const forged = () => create('eve', namespace, { name: 'sluice-controller', labels });
    // Each release in the cluster has such a policy, and it applies to all of them.
    const denied = expect.stringMatching(/ValidatingAdmissionPolicy '[\w-]+-leases'/);
    await expect.poll(forged, SOON).toMatchObject({ code: 1, stderr: denied });
    expect(await create('eve', namespace, { name: 'sluice-controller' })).toMatchObject({ code: 0 });
    expect(await create('eve', namespace, { name: 'other', labels })).toMatchObject({ code: 0 });
    const [{ role } = { role: '' }] = accounts;
    const own = `system:serviceaccount:${release}:${release}-${role}`;
    expect(await create(own, release, { name: 'sluice-controller', labels })).toMatchObject({ code: 0 });
  });

  test('requests for the Lease use a separate priority level', async () => {
    const [{ role } = { role: '' }] = accounts;
    const kubeconfig = await kubeconfigOf({ kubectl: rights.kubectl }, `${release}-${role}`, release);
    /** Returns the FlowSchema that matches a request. */
    const schemaOf = async (...args: string[]) => {
      const { stderr } = await rights.kubectl([`--kubeconfig=${kubeconfig}`, '-v=8', 'get', ...args]);
      const [, uid = ''] = /x-kubernetes-pf-flowschema-uid: (\S+)/i.exec(stderr) ?? [];
      const all = outputOf(
        await rights.kubectl([
          'get',
          'flowschemas',
          '-o',
          'jsonpath={range .items[*]}{.metadata.uid}={.metadata.name} {end}',
        ]),
      );
      return all
        .split(' ')
        .find(each => each.startsWith(uid))
        ?.split('=')[1];
    };
    await expect
      .poll(() => schemaOf('lease', 'sluice-controller', '-n', release), { timeout: 20_000 })
      .toBe(`${release}-leases`);
    const ofName = '--field-selector=metadata.name=sluice-controller';
    expect(await schemaOf('leases', '--all-namespaces', ofName)).toBe(`${release}-leases`);
    expect(await schemaOf('workspaces')).toBe('service-accounts');
  });
});
