import type { TenantSnapshot } from './snapshot.ts';

/**
 * Used to look up the time at which an ingress key of a tenant expires (in milliseconds, or '' if it never expires),
 * given the SHA-256 of the key in hex.
 */
export function ingressKeysOf({ workspace, secretKeys }: TenantSnapshot): Record<string, string> {
  const keys: Record<string, string> = {};
  if (workspace === undefined) return keys;
  for (const { sha256, expiresAt } of workspace.spec.ingressKeys ?? []) {
    keys[sha256] = expiresAt === undefined ? '' : String(Date.parse(expiresAt));
  }
  // If a key is also in a Secret, it ends together with the Secret instead of at the date from REST.
  for (const sha256 of secretKeys) keys[sha256] = '';
  return keys;
}
