import type { KindName } from '../../api/kinds/kinds.ts';
import type { Owner } from '../../api/owner.ts';
import { activationId, blockId, publicId, tenantId } from '../../core/ids/ids.ts';
import { addressKey } from '../../core/ids/invitation-names.ts';
import { ownerKey } from '../auth/ownership.ts';
import type { Cached } from './cached.ts';

/** Kinds whose objects are in the namespace of a workspace. */
export type NamespacedKind = Exclude<KindName, 'Account' | 'Workspace'>;

/** The indexes of a kind. Each function returns the index entries for an object. */
export type Indexes<K extends KindName> = Readonly<Record<string, (object: Cached<K>) => readonly string[]>>;

/** Returns the namespace of an object, or `''` for cluster-scoped objects. */
export const spaceOf = (object: { metadata: { namespace?: string | undefined } }): string =>
  object.metadata.namespace ?? '';
const byNamespace = { namespace: (object: { metadata: { namespace?: string | undefined } }) => [spaceOf(object)] };

/** Finds the objects of a caller, using the keys of `ownerKeysOf`. */
const byOwner = {
  owner: ({ spec }: { readonly spec: { readonly owners?: readonly Owner[] | undefined } }) => [
    ...new Set((spec.owners ?? []).map(ownerKey)),
  ],
};

function hashed<K extends 'CatalogStream' | 'Package' | 'Integration' | 'Subscription'>(kind: K) {
  return {
    ...byNamespace,
    publicId: ({ metadata }: Cached<K>) => [publicId(kind, metadata.namespace ?? '', metadata.name)],
  };
}

/** The indexes of the caches. */
export const INDEXES: { readonly [K in KindName]: Indexes<K> } = {
  Account: { ...byOwner, publicId: ({ metadata }) => [publicId('Account', '', metadata.name)] },
  Workspace: {
    ...byOwner,
    publicId: ({ metadata }) => [tenantId(metadata.name)],
    account: ({ spec }) => [spec.account],
  },
  CatalogStream: hashed('CatalogStream'),
  Package: {
    ...hashed('Package'),
    stream: ({ metadata, spec }) => [...new Set(spec.streams ?? [])].map(name => `${metadata.namespace}/${name}`),
  },
  Integration: {
    ...hashed('Integration'),
    workspace: ({ spec }) => (spec.workspace === undefined ? [] : [spec.workspace]),
    address: ({ metadata, spec }) =>
      spec.invitedEmail === undefined ? [] : [`${metadata.namespace}/${addressKey(spec.invitedEmail)}`],
    tokenHash: ({ status }) => (status?.invitation?.tokenHash === undefined ? [] : [status.invitation.tokenHash]),
  },
  Activation: {
    ...byNamespace,
    publicId: object => [activationId(spaceOf(object), object.spec.integration, object.spec.groupKey)],
    integration: object => [`${spaceOf(object)}/${object.spec.integration}`],
  },
  Block: {
    ...byNamespace,
    publicId: object => [
      blockId(spaceOf(object), object.spec.integration, object.spec.target.kind, object.spec.target.name),
    ],
    integration: object => [`${spaceOf(object)}/${object.spec.integration}`],
  },
  Subscription: {
    ...hashed('Subscription'),
    integration: ({ spec }) => [`${spec.producer}/${spec.integration}`],
  },
};
