import { createHash } from 'node:crypto';

const CROCKFORD = '0123456789abcdefghjkmnpqrstvwxyz';

/** Prefixes of public ids (specification part 2, and the four that it does not name). */
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

/** Lower-case Crockford base32 of `bytes`, most significant bit first, cut to `length` characters. */
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
 * Public id of an object: prefix + 20 characters of Crockford base32 of SHA-256 over `Kind/namespace/name`; the
 * namespace of cluster kinds is empty. Derived, never stored: the same manifest in another cluster has the same id.
 */
export function publicId(kind: Exclude<IdKind, 'Activation' | 'Block'>, namespace: string, name: string): string {
  return ID_PREFIX[kind] + hashId(`${kind}/${namespace}/${name}`);
}

/** Public id of an activation: of the pair (integration, group key), whatever the object is called. */
export function activationId(namespace: string, integration: string, groupKey: string): string {
  return ID_PREFIX.Activation + hashId(`Activation/${namespace}/${integration}/${groupKey}`);
}

/** Public id of a block: of the pair (integration, target). */
export function blockId(namespace: string, integration: string, targetKind: string, target: string): string {
  return ID_PREFIX.Block + hashId(`Block/${namespace}/${integration}/${targetKind}/${target}`);
}

/** Public id of a workspace, which the specification calls tenant, by its name. */
export function tenantId(workspace: string): string {
  return publicId('Workspace', '', workspace);
}

/**
 * Generation of a queue or an inbox: 12 characters of Crockford base32 of the owning object's UID. An object that is
 * deleted and made again has another UID, so keys are never reused and a rebuild finds the same ones.
 */
export function generationOf(uid: string): string {
  return hashId(uid, 12);
}
