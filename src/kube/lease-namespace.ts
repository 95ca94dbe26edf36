/** Namespace of the Lease if neither the settings nor the credentials have one. */
const DEFAULT_NAMESPACE = 'sluice-system';

/**
 * Returns the namespace of the controller's Lease.
 *
 * @param configured `SLUICE_NAMESPACE`
 * @param own namespace of the pod, or of the current context of the kubeconfig
 */
export function leaseNamespace(configured: string | undefined, own: string | undefined): string {
  return configured ?? own ?? DEFAULT_NAMESPACE;
}
