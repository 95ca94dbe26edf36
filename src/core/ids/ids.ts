import { createHash } from 'node:crypto';

const CROCKFORD = '0123456789abcdefghjkmnpqrstvwxyz';

/** Public id prefixes (from specification part 2, plus four it doesn't define). */
export const ID_PREFIX = {
  Workspace: 'ten_',
  CatalogStream: 'cat_',
  Package: 'pkg_',
  Integration: 'int_',
  Activation: 'act_',
  Block: 'blk_',
  Subscription: 'sub_',
  Account: 'acc_',
} as const;

export type IdKind = keyof typeof ID_PREFIX;

/**
 * Encodes `bytes` using the lowercase alphabet of Crockford base32. The most significant bit is first. The result is
 * truncated to `length` characters.
 */
export function crockford(bytes: Uint8Array, length: number): string {
  let out = '';
  let acc = 0;
  let bits = 0;
  for (const byte of bytes) {
    acc = ((acc << 8) | byte) & 0x1fff;
    bits += 8;
    while (bits >= 5 && out.length < length) {
      bits -= 5;
      out += CROCKFORD[(acc >> bits) & 31];
    }
  }
  return out;
}

function hashId(input: string, length = 20): string {
  return crockford(createHash('sha256').update(input, 'utf8').digest(), length);
}

/**
 * Returns an object's public id: a prefix, followed by 20 characters (in Crockford base32) of the SHA-256 of
 * `Kind/namespace/name`. The namespace is empty for cluster-scoped kinds. Since ids are derived instead of stored, a
 * manifest has the same ids in all clusters.
 */
export function publicId(kind: Exclude<IdKind, 'Activation' | 'Block'>, namespace: string, name: string): string {
  return ID_PREFIX[kind] + hashId(`${kind}/${namespace}/${name}`);
}

/** Returns the public id of an activation. The id is derived from the integration and the group key. */
export function activationId(namespace: string, integration: string, groupKey: string): string {
  return ID_PREFIX.Activation + hashId(`Activation/${namespace}/${integration}/${groupKey}`);
}

/** Returns the public id of a block. The id is derived from the integration and the target. */
export function blockId(namespace: string, integration: string, targetKind: string, target: string): string {
  return ID_PREFIX.Block + hashId(`Block/${namespace}/${integration}/${targetKind}/${target}`);
}

/** Returns the public id for the workspace name. Note that the specification calls a workspace a tenant. */
export function tenantId(workspace: string): string {
  return publicId('Workspace', '', workspace);
}

/**
 * Returns the generation of a queue or an inbox: the object's UID as 12 characters in Crockford base32. If an object is
 * deleted and recreated, its UID is different, so keys are never reused.
 */
export function generationOf(uid: string): string {
  return hashId(uid, 12);
}
