import { expect } from 'vitest';
import { INSTANCE_LABEL, QUOTA_NAME } from '../../src/api/well-known.ts';
import { LEASE_NAME } from '../../src/kube/lease.ts';
import { SHIPPED_POLICIES } from '../../tools/generate/rbac/admission.ts';
import type { Platform } from './platform.ts';

const ACCOUNT = {
  apiVersion: 'sluice.dev/v1alpha1',
  kind: 'Account',
  metadata: { name: 'never-stored' },
  spec: { plan: 'Metered', owners: [{ issuer: 'https://issuer.example', subject: 'nobody', role: 'Owner' }] },
};

/** A namespace that does not belong to a workspace. */
const NAMESPACE = 'default';
const APPLY = ['apply', '--server-side', '--force-conflicts', '-f=-', `-n=${NAMESPACE}`];

const QUOTA = {
  apiVersion: 'v1',
  kind: 'ResourceQuota',
  metadata: { name: QUOTA_NAME },
  spec: { hard: { pods: '1' } },
};

const bindingOf = (role: string) => (prefix: string) => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'RoleBinding',
  metadata: { name: `${prefix}-${role}` },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: `${prefix}-${role}` },
});

const EVE = { kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'eve' };

const LEASE = {
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: LEASE_NAME, labels: { [INSTANCE_LABEL]: '' } },
};

/** Policies of separate service accounts. */
const POLICIES = SHIPPED_POLICIES.filter(({ role }) => role !== 'all');

type Forbidden = {
  readonly args: readonly string[];
  readonly object?: (prefix: string) => object;
  /** The user, for policies that apply to everybody except administrators. */
  readonly as?: string;
};

const merge = (patch: object) => ['--type=merge', `-p=${JSON.stringify(patch)}`];

/**
 * For each policy, a write which RBAC allows for the account (or for everyone), and which the policy must reject.
 * config/samples are applied.
 */
const FORBIDDEN: Readonly<Record<string, Forbidden>> = {
  'tenant-bindings': {
    args: [...APPLY.slice(0, -1), '-n=kube-system'],
    object: prefix => ({ ...bindingOf('tenant-edit')(prefix), subjects: [EVE] }),
  },
  leases: { args: [...APPLY], object: () => LEASE, as: EVE.name },
  'controller-objects': {
    args: ['patch', 'catalogstream.sluice.dev/orders', '-n=acme', ...merge({ spec: { description: 'Other' } })],
  },
  'controller-deletions': { args: ['delete', 'activation.sluice.dev/globex-customer-42', '-n=acme'] },
  'controller-secrets': { args: ['create', 'secret', 'generic', 'theirs', '-n=acme'] },
  'controller-quotas': { args: APPLY, object: () => QUOTA },
  'controller-bindings': { args: APPLY, object: bindingOf('workspace-secrets') },
  'facade-metadata': {
    args: ['patch', 'catalogstream.sluice.dev/orders', '-n=acme', ...merge({ metadata: { finalizers: [] } })],
  },
  'facade-workspaces': {
    args: [
      'patch',
      'workspace.sluice.dev/acme',
      ...merge({ metadata: { annotations: { 'sluice.dev/paused': 'true' } } }),
    ],
  },
  'facade-integrations': {
    args: [...APPLY.slice(0, -1), '-n=acme'],
    object: () => ({
      apiVersion: 'sluice.dev/v1alpha1',
      kind: 'Integration',
      metadata: { name: 'never-stored' },
      spec: { workspace: 'globex' },
    }),
  },
  'facade-accounts': { args: ['create', '-f', '-'], object: () => ACCOUNT },
};

/**
 * Uses dry runs for writes that each admission policy of an installation with namespaced access to Secrets must reject.
 */
export async function expectRefusals(
  { node }: Platform,
  { prefix, namespace }: { readonly prefix: string; readonly namespace: string },
): Promise<void> {
  expect(Object.keys(FORBIDDEN)).toEqual(POLICIES.map(({ name }) => name));
  const rule = ['--verb=create,get,patch', '--resource=leases.coordination.k8s.io'];
  await node.kubectl(['create', 'role', 'leases', ...rule, `-n=${NAMESPACE}`]);
  await node.kubectl(['create', 'rolebinding', 'eve', '--role=leases', `--user=${EVE.name}`, `-n=${NAMESPACE}`]);
  for (const { name, role } of POLICIES) {
    const { args = [], object, as: user } = FORBIDDEN[name] ?? {};
    const account = role === 'everybody' ? user : `system:serviceaccount:${namespace}:${prefix}-${role}`;
    const as = account === undefined ? [] : [`--as=${account}`];
    const stdin = object === undefined ? {} : { stdin: JSON.stringify(object(prefix)) };
    const { code, stderr } = await node.kubectl([...args, '--dry-run=server', ...as], stdin);
    expect([name, stderr]).toEqual([name, expect.stringContaining(`ValidatingAdmissionPolicy '${prefix}-${name}'`)]);
    expect(code).toBe(1);
  }
}
