import { type Attempt, bindingOf, bindings, RBAC, RBAC_V1, type Targets, TENANT_ROLES } from './attempt.ts';

const BY_POLICY = /ValidatingAdmissionPolicy 'sluice-tenant-bindings'/;

/** Attempts to bind the tenant roles in a namespace without a workspace. */
export function foreignBindings({ foreign, former, subject }: Targets): Attempt[] {
  const someoneElse = { kind: 'Group', apiGroup: RBAC, name: 'system:authenticated' };
  const older = bindings(former, 'older');
  return [
    ...foreign.flatMap(namespace =>
      TENANT_ROLES.map(
        (role): Attempt => ({
          title: `bind ${role} in ${namespace}`,
          method: 'POST',
          path: bindings(namespace),
          body: bindingOf(role, subject),
          refused: BY_POLICY,
        }),
      ),
    ),
    {
      title: 'bind sluice-tenant-secrets without subjects, to add them later',
      method: 'POST',
      path: bindings('kube-system'),
      body: { ...bindingOf('sluice-tenant-secrets', subject), subjects: [] },
      refused: BY_POLICY,
    },
    ...foreign.map(
      (namespace): Attempt => ({
        title: `apply a binding of sluice-tenant-secrets in ${namespace}`,
        method: 'PATCH',
        patch: 'apply',
        path: `${bindings(namespace, 'mine')}?fieldManager=test&force=true`,
        body: bindingOf('sluice-tenant-secrets', subject),
        refused: BY_POLICY,
      }),
    ),
    {
      title: 'add itself to an older binding',
      method: 'PATCH',
      patch: 'json',
      path: older,
      body: [{ op: 'add', path: '/subjects/-', value: subject }],
      refused: BY_POLICY,
    },
    {
      title: 'replace the subjects of an older binding',
      method: 'PATCH',
      path: older,
      body: { subjects: [subject] },
      refused: BY_POLICY,
    },
    {
      title: 'add everybody to an older binding by server-side apply',
      method: 'PATCH',
      patch: 'apply',
      path: `${older}?fieldManager=test&force=true`,
      body: bindingOf('sluice-tenant-secrets', someoneElse, 'older'),
      refused: BY_POLICY,
    },
    {
      title: 'replace an older binding',
      method: 'PUT',
      path: older,
      body: bindingOf('sluice-tenant-secrets', subject, 'older'),
      refused: BY_POLICY,
    },
    { title: 'delete an older binding', method: 'DELETE', path: older },
  ];
}

/** Attempts to bind other roles, or to change existing bindings. */
export function otherBindings({ workspace, unlabelled, subject }: Targets): Attempt[] {
  const others = [
    'cluster-admin',
    'system:aggregate-to-edit',
    'system:aggregate-to-admin',
    'system:auth-delegator',
    'system:kube-controller-manager',
  ];
  const ours = ['sluice-controller', 'sluice-facade', 'sluice-workspace-secrets'];
  const clusterBinding = (role: string) => ({ ...bindingOf(role, subject), kind: 'ClusterRoleBinding' });
  const clusterBindings = `${RBAC_V1}/clusterrolebindings`;
  return [
    ...[...others, ...ours].flatMap(role =>
      [workspace, 'kube-system'].map(
        (namespace): Attempt => ({
          title: `bind ${role} in ${namespace}`,
          method: 'POST',
          path: bindings(namespace),
          body: bindingOf(role, subject),
        }),
      ),
    ),
    ...[...TENANT_ROLES, 'sluice-admin', 'cluster-admin'].map(
      (role): Attempt => ({
        title: `bind ${role} in the whole cluster`,
        method: 'POST',
        path: clusterBindings,
        body: clusterBinding(role),
      }),
    ),
    {
      title: 'add itself to cluster-admin',
      method: 'PATCH',
      path: `${clusterBindings}/cluster-admin`,
      body: { subjects: [subject] },
    },
    {
      title: 'add itself to the binding for Secrets of the controller',
      method: 'PATCH',
      path: `${clusterBindings}/sluice-workspace-secrets`,
      body: { subjects: [subject] },
    },
    { title: 'delete a ClusterRoleBinding', method: 'DELETE', path: `${clusterBindings}/sluice-facade` },
    {
      title: 'bind a Role that reads Secrets in kube-system',
      method: 'POST',
      path: bindings('kube-system'),
      body: bindingOf('system:controller:token-cleaner', subject, 'mine', 'Role'),
    },
    {
      title: 'add itself to a RoleBinding of Kubernetes',
      method: 'PATCH',
      path: bindings('kube-system', 'system:controller:token-cleaner'),
      body: { subjects: [subject] },
    },
    {
      title: 'turn a binding for viewers into one for Secrets',
      method: 'PATCH',
      path: bindings(workspace, 'viewers'),
      body: { roleRef: { name: 'sluice-tenant-secrets' } },
      refused: /cannot change roleRef/,
    },
    {
      title: 'move a binding into another namespace',
      method: 'PATCH',
      path: bindings(workspace, 'viewers'),
      body: { metadata: { namespace: unlabelled } },
      refused: /does not match the namespace|field is immutable|namespace of the provided object/,
    },
  ];
}
