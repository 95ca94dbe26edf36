import type { Installation } from '../installation.ts';

/** Returns the labels for all objects of an installation, or of one of its components. */
export function labelsOf({ instance }: Installation, component?: string): Record<string, string> {
  return {
    'app.kubernetes.io/name': 'sluice',
    'app.kubernetes.io/instance': instance,
    ...(component === undefined ? {} : { 'app.kubernetes.io/component': component }),
  };
}

/**
 * Returns metadata with a description that is displayed by `kubectl describe`. Cluster-scoped objects don't have a
 * `namespace`.
 */
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
