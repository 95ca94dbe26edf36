/** The namespace for the Lease if it is not specified by the settings or the credentials. */
const DEFAULT_NAMESPACE = 'sluice-system';

/**
 * Returns the namespace in which the controller's Lease is stored.
 *
 * @param configured `SLUICE_NAMESPACE`
 * @param own namespace of the pod, or of the current context of the kubeconfig
 */
export function leaseNamespace(configured: string | undefined, own: string | undefined): string {
  return configured ?? own ?? DEFAULT_NAMESPACE;
}
