import { FINALIZER } from '../../api/well-known.ts';
import type { KubeClient } from '../../kube/client.ts';
import { isMissing } from '../../kube/kube-error.ts';
import type { AnyObject } from '../../kube/object.ts';
import type { Resource } from '../../kube/resource.ts';

type Patching = {
  readonly client: Pick<KubeClient, 'mergePatch'>;
  readonly resource: Resource;
  readonly signal: AbortSignal;
};

export function hasFinalizer({ metadata }: AnyObject): boolean {
  return metadata.finalizers?.includes(FINALIZER) ?? false;
}

/**
 * Adds the finalizer to the object and returns the updated object.
 * @throws KubeError 409 if object has changed since it was read
 */
export async function addFinalizer<P extends AnyObject>(object: P, patching: Patching): Promise<P> {
  const finalizers = [...(object.metadata.finalizers ?? []), FINALIZER];
  const { metadata } = await patch(object, finalizers, patching);
  return { ...object, metadata: { ...object.metadata, finalizers, resourceVersion: metadata.resourceVersion } };
}

/**
 * Removes the finalizer from the object. Does nothing if the object no longer exists. @throws KubeError 409 as above
 */
export async function removeFinalizer(object: AnyObject, patching: Patching): Promise<void> {
  const finalizers = (object.metadata.finalizers ?? []).filter(name => name !== FINALIZER);
  try {
    await patch(object, finalizers, patching);
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

/**
 * Patches the whole list of finalizers. The resourceVersion is set to make sure that we don't overwrite the finalizers
 * of other controllers.
 */
function patch({ metadata }: AnyObject, finalizers: string[], { client, resource, signal }: Patching) {
  const { uid, resourceVersion } = metadata;
  return client.mergePatch(resource, metadata, { metadata: { uid, resourceVersion, finalizers } }, { signal });
}
