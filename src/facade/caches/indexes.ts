import type { KindName } from '../../api/kinds/kinds.ts';
import type { Owner } from '../../api/owner.ts';
import { activationId, blockId, publicId, tenantId } from '../../core/ids/ids.ts';
import { addressKey } from '../../core/ids/invitation-names.ts';
import { ownerKey } from '../auth/ownership.ts';
import type { Cached } from './cached.ts';

/** Kinds whose objects are in a workspace's namespace. */
export type NamespacedKind = Exclude<KindName, 'Account' | 'Workspace'>;

/** A kind's indexes. Each function returns the index entries for an object. */
export type Indexes<K extends KindName> = Readonly<Record<string, (object: Cached<K>) => readonly string[]>>;

/** Returns the namespace of an object, or `''` for cluster-scoped objects. */
export const spaceOf = (object: { metadata: { namespace?: string | undefined } }): string =>
  object.metadata.namespace ?? '';
const byNamespace = { namespace: (object: { metadata: { namespace?: string | undefined } }) => [spaceOf(object)] };

/** Finds a caller's objects, using the keys of `ownerKeysOf`. */
const byOwner = {
  owner: ({ spec }: { readonly spec: { readonly owners?: readonly Owner[] | undefined } }) => [
    ...new Set((spec.owners ?? []).map(ownerKey)),
  ],
};

/** The maximum number of integration ids to keep in memory. When this number is exceeded, all of them are removed. */
const MOST_IDS = 20_000;
const integrationIds = new Map<string, string>();

/** Returns the public id of an integration. Ids are kept because thousands of objects can belong to an integration. */
export function integrationIdOf(producer: string, integration: string): string {
  const key = `${producer}/${integration}`;
  let id = integrationIds.get(key);
  if (id === undefined) {
    if (integrationIds.size >= MOST_IDS) integrationIds.clear();
    integrationIds.set(key, (id = publicId('Integration', producer, integration)));
  }
  return id;
}

const ids = new WeakMap<object, string>();

/**
 * Returns the public id of a cached object. The id is only derived once, so lists of thousands of objects can use it.
 */
export function publicIdOf<K extends 'CatalogStream' | 'Package' | 'Integration' | 'Subscription'>(
  kind: K,
  object: Cached<K>,
): string {
  let id = ids.get(object);
  if (id === undefined) ids.set(object, (id = publicId(kind, spaceOf(object), object.metadata.name)));
  return id;
}

function hashed<K extends 'CatalogStream' | 'Package' | 'Integration' | 'Subscription'>(kind: K) {
  return { ...byNamespace, publicId: (object: Cached<K>) => [publicIdOf(kind, object)] };
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
    integrationId: object => [integrationIdOf(spaceOf(object), object.spec.integration)],
  },
  Block: {
    ...byNamespace,
    publicId: object => [
      blockId(spaceOf(object), object.spec.integration, object.spec.target.kind, object.spec.target.name),
    ],
    integrationId: object => [integrationIdOf(spaceOf(object), object.spec.integration)],
  },
  Subscription: {
    ...hashed('Subscription'),
    integration: ({ spec }) => [`${spec.producer}/${spec.integration}`],
    integrationId: ({ spec }) => [integrationIdOf(spec.producer, spec.integration)],
  },
};
