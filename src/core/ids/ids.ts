import { createHash } from 'node:crypto';

const CROCKFORD = '0123456789abcdefghjkmnpqrstvwxyz';

/** Prefixes of public ids (specification part 2, and four that it does not define). */
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

/** Encodes `bytes` in lower-case Crockford base32, most significant bit first, cut to `length` characters. */
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
 * Returns the public id of an object. It consists of a prefix and 20 Crockford base32 characters of the SHA-256 of
 * `Kind/namespace/name`. Cluster-scoped kinds have an empty namespace. The id is derived and not stored, so a manifest
 * has the same id in every cluster.
 */
export function publicId(kind: Exclude<IdKind, 'Activation' | 'Block'>, namespace: string, name: string): string {
  return ID_PREFIX[kind] + hashId(`${kind}/${namespace}/${name}`);
}

/** Returns the public id of an activation, which is derived from the integration and the group key. */
export function activationId(namespace: string, integration: string, groupKey: string): string {
  return ID_PREFIX.Activation + hashId(`Activation/${namespace}/${integration}/${groupKey}`);
}

/** Returns the public id of a block, which is derived from the integration and the target. */
export function blockId(namespace: string, integration: string, targetKind: string, target: string): string {
  return ID_PREFIX.Block + hashId(`Block/${namespace}/${integration}/${targetKind}/${target}`);
}

/** Returns the public id of a workspace by its name. In the specification, a workspace is a tenant. */
export function tenantId(workspace: string): string {
  return publicId('Workspace', '', workspace);
}

/**
 * Returns the generation of a queue or an inbox, which consists of 12 Crockford base32 characters of the UID of its
 * object. If an object is created again, it has a different UID, so keys are not reused.
 */
export function generationOf(uid: string): string {
  return hashId(uid, 12);
}
