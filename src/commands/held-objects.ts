import { DEFAULT_INSTANCE, instanceOf } from '../api/instance.ts';
import type { KindName } from '../api/kinds/kinds.ts';
import { FINALIZER, INSTANCE_LABEL, WORKSPACE_LABEL } from '../api/well-known.ts';
import { hasFinalizer, removeFinalizer } from '../controller/engine/finalizer.ts';
import { WITH_FINALIZER } from '../kube/access/rights.ts';
import type { KubeClient } from '../kube/client.ts';
import { instanceFor } from '../kube/instances/responsibility.ts';
import { isKubeError, isStale } from '../kube/kube-error.ts';
import { NAMESPACES, ROLE_BINDINGS, resourceOf } from '../kube/resource.ts';
import { runFewAtOnce } from '../time/few-at-once.ts';
import { DRAINING, type HeldObject, NO_BACKLOG } from './uninstall-plan.ts';

/** The number of finalizers removed at the same time. */
const AT_ONCE = 8;
/**
 * The number of times that the objects are listed. If objects change while their finalizers are being removed, they
 * need to be listed again.
 */
const PASSES = 10;
/** Shared by all objects without a different one. */
const ONLY_OURS: string[] = [FINALIZER];

type Item = Omit<HeldObject, 'kind'>;

/** Lists all objects of a kind. If the CustomResourceDefinition was deleted, the result is empty. */
async function listKind(client: Pick<KubeClient, 'list'>, kind: KindName, signal: AbortSignal): Promise<HeldObject[]> {
  try {
    return (await client.list(resourceOf(kind), (object: Item) => pick(kind, object), { signal })).items;
  } catch (error) {
    if (isKubeError(error, 404)) return [];
    throw error;
  }
}

/** Reads the responsible installation for each namespace. */
async function readInstances(client: Pick<KubeClient, 'list'>, signal: AbortSignal) {
  const toHome = ({ metadata }: Item) =>
    [metadata.name, metadata.labels?.[INSTANCE_LABEL] ?? DEFAULT_INSTANCE] as const;
  // Other namespaces are ignored by a controller.
  const labelSelector = `${WORKSPACE_LABEL},${INSTANCE_LABEL}`;
  const labelled = await client.list(NAMESPACES, toHome, { labelSelector, signal });
  const homes = new Map(labelled.items);
  const workspaces = new Map((await listKind(client, 'Workspace', signal)).map(each => [each.metadata.name, each]));
  const instanceOfNamespace = (namespace: string): string => {
    const { spec: assigned } = workspaces.get(namespace) ?? {};
    return instanceFor(assigned && { spec: assigned }, { instance: homes.get(namespace) ?? DEFAULT_INSTANCE });
  };
  return { workspaces: [...workspaces.values()], instanceOfNamespace };
}

/** Lists all objects with the finalizer, grouped by the responsible installation. */
export async function listHeldObjects(
  client: Pick<KubeClient, 'list'>,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, readonly HeldObject[]>> {
  const { workspaces, instanceOfNamespace } = await readInstances(client, signal);
  const held: HeldObject[] = [];
  for (const kind of WITH_FINALIZER) {
    const objects = kind === 'Workspace' ? workspaces : await listKind(client, kind, signal);
    held.push(...objects.filter(hasFinalizer));
  }
  return Map.groupBy(held, ({ metadata: { namespace }, spec = {} }) =>
    namespace === undefined ? instanceOf({ spec }) : instanceOfNamespace(namespace),
  );
}

/**
 * Removes the RoleBindings that allow the controller of an installation to read Secrets in its namespaces.
 *
 * @param role their name, same as the ClusterRole
 */
export async function removeRoleBindings(
  client: Pick<KubeClient, 'list' | 'remove'>,
  { instance, role }: { readonly instance: string; readonly role: string },
  signal: AbortSignal,
): Promise<number> {
  const { instanceOfNamespace } = await readInstances(client, signal);
  const selection = { fieldSelector: `metadata.name=${role}`, metadataOnly: true, signal };
  const { items } = await client.list(ROLE_BINDINGS, ({ metadata }: Item) => metadata.namespace ?? '', selection);
  const ours = items.filter(namespace => instanceOfNamespace(namespace) === instance);
  for (const namespace of ours) await client.remove(ROLE_BINDINGS, { namespace, name: role }, {}, { signal });
  return ours.length;
}

/** Only the required fields are kept, because there may be 100,000 objects and the Job has little memory. */
export function pick(kind: KindName, { metadata, spec, status }: Item): HeldObject {
  const { name, namespace, uid, resourceVersion, finalizers } = metadata;
  const { producer, stream, instance } = spec ?? {};
  const backlog = status?.delivery?.backlog ?? NO_BACKLOG;
  const conditions = status?.conditions?.filter(({ reason }) => reason === DRAINING) ?? [];
  const isOnlyOurs = finalizers?.length === 1 && finalizers[0] === FINALIZER;
  return {
    kind,
    metadata: { name, namespace, uid, resourceVersion, finalizers: isOnlyOurs ? ONLY_OURS : finalizers },
    spec: {
      ...(producer && { producer }),
      ...(stream && { stream }),
      ...(instance && { instance }),
    },
    status: {
      ...(backlog !== NO_BACKLOG && { delivery: { backlog } }),
      ...(conditions.length > 0 && { conditions: conditions.map(({ type, reason }) => ({ type, reason })) }),
    },
  };
}

/**
 * Removes the finalizer from all objects of an installation.
 *
 * @param renew called before each object
 * @throws if another process keeps adding the finalizer
 */
export async function removeFinalizers(
  client: Pick<KubeClient, 'list' | 'mergePatch'>,
  instance: string,
  renew: (when: 'due') => Promise<void>,
  signal: AbortSignal,
): Promise<number> {
  let removed = 0;
  const list = async () => (await listHeldObjects(client, signal)).get(instance) ?? [];
  for (let pass = 1; pass <= PASSES; pass++) {
    const left = await list();
    if (left.length === 0) return removed;
    await runFewAtOnce(left, AT_ONCE, async object => {
      await renew('due');
      if (await isRemoved(client, object, signal)) removed++;
    });
  }
  const left = (await list()).length;
  if (left === 0) return removed;
  throw new Error(`${left} custom resources have their finalizer again. Stop all controllers of Sluice and try again`);
}

/** Returns false if the object has changed in the meantime. */
async function isRemoved(client: Pick<KubeClient, 'mergePatch'>, object: HeldObject, signal: AbortSignal) {
  const resource = resourceOf(object.kind);
  try {
    await removeFinalizer(object, { client, resource, signal });
    return true;
  } catch (error) {
    if (isStale(error)) return false;
    throw error;
  }
}
