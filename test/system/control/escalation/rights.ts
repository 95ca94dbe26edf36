import { type Attempt, inNamespace, RBAC, RBAC_V1, type Targets } from './attempt.ts';

const POLICIES = '/apis/admissionregistration.k8s.io/v1';

/** Attempts to add permissions to roles, or to remove their limits. */
export function rolesAndPolicies({ workspace, subject }: Targets): Attempt[] {
  const readSecrets = { apiGroups: [''], resources: ['secrets'], verbs: ['*'] };
  const rules = [{ op: 'add', path: '/rules/-', value: readSecrets }];
  const role = (kind: string) => ({
    apiVersion: `${RBAC}/v1`,
    kind,
    metadata: { name: 'mine' },
    rules: [readSecrets],
  });
  const policy = `${POLICIES}/validatingadmissionpolicies/sluice-tenant-bindings`;
  const binding = `${POLICIES}/validatingadmissionpolicybindings/sluice-tenant-bindings`;
  return [
    ...['sluice-tenant-view', 'sluice-admin', 'view', 'system:public-info-viewer'].map(
      (name): Attempt => ({
        title: `widen ${name}`,
        method: 'PATCH',
        patch: 'json',
        path: `${RBAC_V1}/clusterroles/${name}`,
        body: rules,
      }),
    ),
    { title: 'create a ClusterRole', method: 'POST', path: `${RBAC_V1}/clusterroles`, body: role('ClusterRole') },
    ...['kube-system', workspace].map(
      (namespace): Attempt => ({
        title: `create a Role in ${namespace}`,
        method: 'POST',
        path: `${RBAC_V1}/namespaces/${namespace}/roles`,
        body: role('Role'),
      }),
    ),
    { title: 'delete the policy', method: 'DELETE', path: policy },
    { title: 'delete the binding of the policy', method: 'DELETE', path: binding },
    { title: 'empty the policy', method: 'PATCH', path: policy, body: { spec: { failurePolicy: 'Ignore' } } },
    {
      title: 'let the policy only warn',
      method: 'PATCH',
      path: binding,
      body: { spec: { validationActions: ['Warn'] } },
    },
    {
      title: 'create a webhook that changes RoleBindings',
      method: 'POST',
      path: `${POLICIES}/mutatingwebhookconfigurations`,
      body: { apiVersion: 'admissionregistration.k8s.io/v1', kind: 'MutatingWebhookConfiguration', subject },
    },
  ];
}

/** Attempts to impersonate another user. */
export function identities({ workspace, user }: Targets): Attempt[] {
  const account = 'system:serviceaccount:sluice-system:sluice-controller';
  const tokens: readonly (readonly [string, string])[] = [
    ['sluice-system', 'sluice-controller'],
    ['sluice-system', 'sluice-facade'],
    ['kube-system', 'default'],
    [workspace, 'default'],
  ];
  const impersonations: readonly Readonly<Record<string, string>>[] = [
    { 'impersonate-user': 'system:admin' },
    { 'impersonate-user': user, 'impersonate-group': 'system:masters' },
    { 'impersonate-user': account },
    { 'impersonate-user': 'eve', 'impersonate-uid': '1' },
    { 'impersonate-user': user, 'impersonate-extra-scopes': 'all' },
  ];
  return [
    ...impersonations.map(
      (headers): Attempt => ({
        title: `read Secrets of kube-system as ${Object.values(headers).join(' in ')}`,
        method: 'GET',
        path: inNamespace('kube-system', 'secrets'),
        headers,
      }),
    ),
    ...tokens.map(
      ([namespace, name]): Attempt => ({
        title: `create a token of ${namespace}/${name}`,
        method: 'POST',
        path: `${inNamespace(namespace, 'serviceaccounts')}/${name}/token`,
        body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} },
      }),
    ),
    {
      title: 'create a service account in sluice-system',
      method: 'POST',
      path: inNamespace('sluice-system', 'serviceaccounts'),
      body: { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'mine' } },
    },
    {
      title: 'request a certificate',
      method: 'POST',
      path: '/apis/certificates.k8s.io/v1/certificatesigningrequests',
      body: { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest', metadata: { name: 'mine' } },
    },
    {
      title: 'take over the Lease of the controller',
      method: 'PATCH',
      path: '/apis/coordination.k8s.io/v1/namespaces/sluice-system/leases/sluice-controller',
      body: { spec: { holderIdentity: 'eve' } },
    },
  ];
}
