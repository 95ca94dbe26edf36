import { type Attempt, inNamespace, type Targets } from './attempt.ts';

/** Attempts to turn a namespace into a workspace. */
export function namespaces({ foreign, unlabelled }: Targets): Attempt[] {
  const label = (namespace: string) => ({ metadata: { labels: { 'sluice.dev/workspace': namespace } } });
  const reserved = /metadata.name cannot be default, kube-\* or sluice-\*/;
  return [
    ...foreign.map(
      (namespace): Attempt => ({
        title: `label ${namespace} as a workspace`,
        method: 'PATCH',
        path: `/api/v1/namespaces/${namespace}`,
        body: label(namespace),
      }),
    ),
    ...['status', 'finalize'].map(
      (subresource): Attempt => ({
        title: `label a namespace by its ${subresource}`,
        method: 'PUT',
        path: `/api/v1/namespaces/${unlabelled}/${subresource}`,
        body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: unlabelled, ...label(unlabelled).metadata } },
      }),
    ),
    {
      title: 'create a namespace with the label',
      method: 'POST',
      path: '/api/v1/namespaces',
      body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-mine', ...label('kube-mine').metadata } },
    },
    { title: 'delete a namespace', method: 'DELETE', path: `/api/v1/namespaces/${unlabelled}` },
    ...['kube-system', 'kube-public', 'sluice-system', 'default'].map(
      (name): Attempt => ({
        title: `create the Workspace ${name}`,
        method: 'POST',
        path: '/apis/sluice.dev/v1alpha1/workspaces',
        body: { apiVersion: 'sluice.dev/v1alpha1', kind: 'Workspace', metadata: { name }, spec: { account: 'ada' } },
        refused: reserved,
      }),
    ),
    {
      title: 'write the status of a Workspace',
      method: 'PATCH',
      path: '/apis/sluice.dev/v1alpha1/workspaces/any/status',
      body: { status: { namespace: 'kube-system' } },
    },
  ];
}

/** Attempts to read or write Secrets, directly or using a pod or an endpoint. */
export function secrets({ foreign, workspace, unlabelled }: Targets): Attempt[] {
  const metadata = { name: 'mine', annotations: { 'kubernetes.io/service-account.name': 'default' } };
  const secret = { apiVersion: 'v1', kind: 'Secret', type: 'kubernetes.io/service-account-token', metadata };
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'mine' },
    spec: { containers: [{ name: 'mine', image: 'mine' }], serviceAccountName: 'sluice-controller' },
  };
  return [
    ...foreign.flatMap((namespace): Attempt[] => [
      { title: `list the Secrets of ${namespace}`, method: 'GET', path: inNamespace(namespace, 'secrets') },
      { title: `read a Secret of ${namespace}`, method: 'GET', path: inNamespace(namespace, 'secrets/treasure') },
    ]),
    { title: 'list the Secrets of a workspace', method: 'GET', path: inNamespace(workspace, 'secrets') },
    { title: 'list all Secrets', method: 'GET', path: '/api/v1/secrets' },
    { title: 'watch all Secrets', method: 'GET', path: '/api/v1/secrets?watch=true&timeoutSeconds=1' },
    ...['kube-system', 'sluice-system', workspace].map(
      (namespace): Attempt => ({
        title: `create a Secret with a token in ${namespace}`,
        method: 'POST',
        path: inNamespace(namespace, 'secrets'),
        body: secret,
      }),
    ),
    {
      title: 'change a Secret',
      method: 'PATCH',
      path: inNamespace(unlabelled, 'secrets/treasure'),
      body: { data: { key: '' } },
    },
    { title: 'delete a Secret', method: 'DELETE', path: inNamespace(unlabelled, 'secrets/treasure') },
    { title: 'create a pod', method: 'POST', path: inNamespace('sluice-system', 'pods'), body: pod },
    { title: 'run a command in a pod', method: 'POST', path: inNamespace('sluice-system', 'pods/any/exec?command=sh') },
    {
      title: 'send a Secret to an endpoint',
      method: 'POST',
      path: `/apis/sluice.dev/v1alpha1/namespaces/${unlabelled}/subscriptions`,
      body: { apiVersion: 'sluice.dev/v1alpha1', kind: 'Subscription', metadata: { name: 'mine' }, spec: {} },
    },
  ];
}
