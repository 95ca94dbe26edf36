import { createHash } from 'node:crypto';
import { API_VERSION } from '../../../src/api/group-version.ts';
import type { KindName } from '../../../src/api/kinds/kinds.ts';
import { INGRESS_KEY_SECRET_TYPE, WORKSPACE_LABEL } from '../../../src/api/well-known.ts';
import type { Cluster } from '../../support/kubernetes/cluster.ts';

/** Any object as a manifest. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: object };
  readonly [field: string]: unknown;
}

function ours(kind: KindName, name: string, spec: object, namespace?: string): Manifest {
  const metadata = namespace === undefined ? { name } : { name, namespace };
  return { apiVersion: API_VERSION, kind, metadata, spec };
}

/** A tenant: namespace, account and workspace of one name. */
export function tenant(name: string, account: object = { plan: 'Metered' }): Manifest[] {
  const owners = [{ issuer: 'https://login.example.com', group: `${name}-admins`, role: 'Owner' }];
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: { [WORKSPACE_LABEL]: name } } },
    ours('Account', name, { owners, ...account }),
    ours('Workspace', name, { account: name }),
  ];
}

/** An ingress key as a Secret of the workspace. */
export function ingressKey(workspace: string, key: string, name = 'ingress'): Manifest {
  const stringData = { key };
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: workspace },
    type: INGRESS_KEY_SECRET_TYPE,
    stringData,
  };
}

export function stream(producer: string, name: string, spec: object = {}): Manifest {
  return ours('CatalogStream', name, { public: true, ...spec }, producer);
}

/** Named as the partner's workspace, and granted to it. */
export function integration(producer: string, partner: string, spec: object = {}): Manifest {
  return ours('Integration', partner, { workspace: partner, ...spec }, producer);
}

/** Group keys may hold what names cannot: the object is named by their hash. */
export function activationName(partner: string, groupKey: string): string {
  return `${partner}-${createHash('sha256').update(groupKey).digest('hex').slice(0, 12)}`;
}

export function activation(producer: string, partner: string, groupKey: string, spec: object = {}): Manifest {
  return ours('Activation', activationName(partner, groupKey), { integration: partner, groupKey, ...spec }, producer);
}

export function block(producer: string, name: string, spec: object): Manifest {
  return ours('Block', name, spec, producer);
}

export function pkg(producer: string, name: string, streams: readonly string[]): Manifest {
  return ours('Package', name, { streams }, producer);
}

/** The partner's consent, named `<producer>-<stream>`. Without a URL, it is pull-only. */
export function subscription(
  partner: string,
  producer: string,
  streamName: string,
  endpoint: { readonly url: string; readonly [field: string]: unknown } | undefined,
  spec: object = {},
): Manifest {
  const target = { producer, integration: partner, stream: streamName, ...(endpoint && { endpoint }) };
  return ours('Subscription', `${producer}-${streamName}`, { ...target, ...spec }, partner);
}

/** The standard output of kubectl. @throws with the error message of kubectl */
export async function kubectl(cluster: Cluster, args: readonly string[], stdin?: string): Promise<string> {
  const { code, stdout, stderr } = await cluster.kubectl(args, stdin === undefined ? {} : { stdin });
  if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
  return stdout;
}

/** Applies everything with a single server-side `kubectl apply`, in this order. */
export async function apply(cluster: Cluster, manifests: readonly Manifest[]): Promise<string> {
  const list = { apiVersion: 'v1', kind: 'List', items: manifests };
  return kubectl(cluster, ['apply', '--server-side', '-f', '-'], JSON.stringify(list));
}

/** Waits until every object of the kind in the namespace has the condition. @throws when some had it not in time */
export async function waitForAll(
  cluster: Cluster,
  kind: string,
  namespace: string,
  condition = 'Ready',
  timeoutSeconds = 60,
): Promise<void> {
  const how = [`--for=condition=${condition}`, `--timeout=${timeoutSeconds}s`, '--all'];
  await kubectl(cluster, ['wait', kind, '-n', namespace, ...how]);
}

/** A condition of an object as `Status/Reason`, or an empty string if there is none. */
export async function conditionOf(
  cluster: Cluster,
  object: string,
  namespace: string | undefined,
  type = 'Ready',
): Promise<string> {
  const path = `{range .status.conditions[?(@.type=="${type}")]}{.status}/{.reason}{end}`;
  const where = namespace === undefined ? [] : ['-n', namespace];
  return (await cluster.kubectl(['get', object, ...where, '-o', `jsonpath=${path}`])).stdout;
}
