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

/** Encodes `bytes` in lowercase Crockford base32, most significant bit first, truncated to `length` characters. */
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
 * Returns an object's public id: a prefix, followed by 20 Crockford base32 characters of the SHA-256 of
 * `Kind/namespace/name`. The namespace is empty for cluster-scoped kinds. IDs are derived rather than stored, which
 * means that a manifest will have the same id in every cluster.
 */
export function publicId(kind: Exclude<IdKind, 'Activation' | 'Block'>, namespace: string, name: string): string {
  return ID_PREFIX[kind] + hashId(`${kind}/${namespace}/${name}`);
}

/** Returns the public id of an activation, derived from its integration and group key. */
export function activationId(namespace: string, integration: string, groupKey: string): string {
  return ID_PREFIX.Activation + hashId(`Activation/${namespace}/${integration}/${groupKey}`);
}

/** Returns the public id of a block, derived from its integration and target. */
export function blockId(namespace: string, integration: string, targetKind: string, target: string): string {
  return ID_PREFIX.Block + hashId(`Block/${namespace}/${integration}/${targetKind}/${target}`);
}

/** Returns a workspace's public id by name. Note that the specification calls a workspace a tenant. */
export function tenantId(workspace: string): string {
  return publicId('Workspace', '', workspace);
}

/**
 * Returns the generation of a queue or inbox, consisting of 12 Crockford base32 characters of its object's UID. An
 * object created again has a different UID, so we never reuse keys.
 */
export function generationOf(uid: string): string {
  return hashId(uid, 12);
}
