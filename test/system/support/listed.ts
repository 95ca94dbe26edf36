import { KINDS } from '../../../src/api/kinds/kinds.ts';
import { type Resource, resourceOf } from '../../../src/kube/resource.ts';
import type { Cluster } from '../../support/kubernetes/cluster.ts';
import { clientOf } from './shared-client.ts';

/** All Sluice kinds. */
export const OURS: readonly Resource[] = Object.values(KINDS).map(({ kind }) => resourceOf(kind));

export interface Listed {
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly resourceVersion: string;
    readonly finalizers?: readonly string[];
  };
}

/**
 * Returns the objects of these kinds in all namespaces, or in one of them. Does not use kubectl because starting it
 * takes longer than reading a few objects.
 */
export async function list<T extends Listed = Listed>(
  cluster: Pick<Cluster, 'kubeconfig'>,
  resources: readonly Resource[],
  namespace?: string,
): Promise<T[]> {
  const client = clientOf(cluster);
  const all: T[] = [];
  // One after the other, because each concurrent request would open a connection.
  for (const resource of resources) {
    const withKind = (object: T) => ({ ...object, kind: resource.kind });
    all.push(...(await client.list(resource, withKind, { namespace })).items);
  }
  return all;
}

/** Returns a line for each object, such as `Package shop/all`. */
export const lineOf = ({ kind, metadata }: Listed): string => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`;

/** Returns the lines of all objects of these kinds, with the version that each write changes. */
export async function versionLines(
  cluster: Pick<Cluster, 'kubeconfig'>,
  resources: readonly Resource[] = OURS,
): Promise<string[]> {
  const objects = await list(cluster, resources);
  return objects.map(object => `${lineOf(object)} ${object.metadata.resourceVersion}`).toSorted();
}
