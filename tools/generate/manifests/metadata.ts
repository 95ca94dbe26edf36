import type { Installation } from '../installation.ts';

/** Returns the labels of every object of an installation, or of one component of it. */
export function labelsOf({ instance }: Installation, component?: string): Record<string, string> {
  return {
    'app.kubernetes.io/name': 'sluice',
    'app.kubernetes.io/instance': instance,
    ...(component === undefined ? {} : { 'app.kubernetes.io/component': component }),
  };
}

/** Returns metadata with a sentence that `kubectl describe` shows. Without `namespace`, for an object of the cluster. */
export function describedMetadata(
  installation: Installation,
  {
    name,
    description,
    namespace,
  }: { readonly name: string; readonly description: string; readonly namespace?: string },
) {
  return {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    labels: labelsOf(installation),
    annotations: { 'kubernetes.io/description': description },
  };
}
