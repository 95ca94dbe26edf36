import { createHash } from 'node:crypto';
import { API_VERSION } from '../../../src/api/group-version.ts';
import { KINDS, type KindName } from '../../../src/api/kinds/kinds.ts';
import { INGRESS_KEY_SECRET_TYPE, WORKSPACE_LABEL } from '../../../src/api/well-known.ts';
import { type Resource, resourceOf } from '../../../src/kube/resource.ts';
import type { Cluster } from '../../support/kubernetes/cluster.ts';
import { eventually } from './deadline.ts';
import { clientOf } from './shared-client.ts';

/** A Kubernetes object as a manifest. */
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

/** Returns a tenant: a namespace, an account, and a workspace with the same name. */
export function tenant(name: string, account: object = { plan: 'Metered' }): Manifest[] {
  const owners = [{ issuer: 'https://login.example.com', group: `${name}-admins`, role: 'Owner' }];
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: { [WORKSPACE_LABEL]: name } } },
    ours('Account', name, { owners, ...account }),
    ours('Workspace', name, { account: name }),
  ];
}

/** Returns an ingress key as a Secret of the workspace. */
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

/** Returns an integration that is named like the partner's workspace and grants access to it. */
export function integration(producer: string, partner: string, spec: object = {}): Manifest {
  return ours('Integration', partner, { workspace: partner, ...spec }, producer);
}

/**
 * Returns the name of an Activation. Group keys may contain characters that are not allowed in names, so this uses
 * their hash.
 */
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

/** Returns the partner's Subscription, named `<producer>-<stream>`. Without a URL, events must be pulled. */
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

/**
 * Returns the standard output of kubectl.
 * @throws with the error message of kubectl
 */
export async function kubectl(cluster: Cluster, args: readonly string[], stdin?: string): Promise<string> {
  const { code, stdout, stderr } = await cluster.kubectl(args, stdin === undefined ? {} : { stdin });
  if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
  return stdout;
}

/** Returns the resource for a kind that has a regular plural. */
function resourceFor({ apiVersion, kind, metadata }: Manifest): Resource {
  const [version = '', group = ''] = apiVersion.split('/').toReversed();
  const plural = `${kind.toLowerCase()}s`.replace(/ys$/, 'ies');
  return { group, version, kind, plural, namespaced: metadata.namespace !== undefined };
}

/**
 * Applies the objects in this order, like `kubectl apply --server-side`. Does not use kubectl because starting it and
 * reading the schemas would take longer than applying a few objects.
 * @throws if an object is refused
 */
export async function apply(cluster: Cluster, manifests: readonly Manifest[]): Promise<void> {
  const client = clientOf(cluster);
  for (const manifest of manifests) {
    await client.apply(resourceFor(manifest), manifest.metadata, manifest, { fieldManager: 'kubectl' });
  }
}

/** Returns the resource of a kind of Sluice by a name that kubectl accepts, such as `subscription` or `wsub`. */
function resourceCalled(word: string): Resource {
  const kind = Object.values(KINDS).find(each => [each.singular, each.plural, ...each.shortNames].includes(word));
  if (kind === undefined) throw new Error(`${word} is not a kind of Sluice`);
  return resourceOf(kind.kind);
}

/**
 * Returns an object of Sluice like `kubectl get`, or undefined if it does not exist. Does not use kubectl because
 * starting it takes longer than reading an object.
 */
export async function read<T>(
  cluster: Cluster,
  kind: string,
  name: string,
  namespace: string | undefined,
): Promise<T | undefined> {
  return clientOf(cluster).get<T>(resourceCalled(kind), namespace === undefined ? { name } : { name, namespace });
}

interface Conditioned {
  readonly metadata: { readonly name: string; readonly generation?: number };
  readonly status?: {
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason: string;
      readonly observedGeneration?: number;
    }[];
  };
}

/**
 * Waits until each object of this kind in the namespace has the condition, such as `Ready` or `Ready=Unknown`, for its
 * current generation. Uses a single request for all objects, while `kubectl wait` waits for one object after another.
 * @throws if there are no objects, or if some of them did not have the condition in time
 */
export async function waitForAll(
  cluster: Cluster,
  kind: string,
  namespace: string,
  condition = 'Ready',
  timeoutSeconds = 60,
): Promise<void> {
  const resource = resourceCalled(kind);
  const [type, wanted = 'True'] = condition.split('=');
  const has = ({ metadata, status }: Conditioned) =>
    status?.conditions?.some(
      each =>
        each.type === type &&
        each.status === wanted &&
        (each.observedGeneration ?? Number.POSITIVE_INFINITY) >= (metadata.generation ?? 0),
    ) === true;
  const client = clientOf(cluster);
  let missing: string[] = [];
  const probe = async () => {
    const found = (object: Conditioned) => ({ name: object.metadata.name, has: has(object) });
    const { items } = await client.list(resource, found, { namespace });
    if (items.length === 0) throw new Error('there are no objects');
    missing = items.filter(each => !each.has).map(({ name }) => name);
    return missing.length === 0;
  };
  try {
    await eventually(`${kind} in ${namespace}`, probe, { withinMs: timeoutSeconds * 1_000 });
  } catch (cause) {
    const first = missing.slice(0, 10).join(', ');
    throw new Error(`${missing.length} objects are not ${condition}, such as ${first}`, { cause });
  }
}

/** Returns a condition of an object as `Status/Reason`, or an empty string if there is none. */
export async function conditionOf(
  cluster: Cluster,
  object: string,
  namespace: string | undefined,
  type = 'Ready',
): Promise<string> {
  const [kind = '', name = ''] = object.split('/');
  const found = await read<Conditioned>(cluster, kind, name, namespace);
  const condition = found?.status?.conditions?.find(each => each.type === type);
  return condition === undefined ? '' : `${condition.status}/${condition.reason}`;
}
