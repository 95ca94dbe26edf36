import type { TenantSnapshot } from './snapshot.ts';

/**
 * Maps the SHA-256 of a tenant's ingress key (in hex) to its expiry time (in milliseconds, or '' if it never expires).
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
