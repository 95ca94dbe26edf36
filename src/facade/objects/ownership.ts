import type { KindName } from '../../api/kinds/kinds.ts';
import { publicId, tenantId } from '../../core/ids/ids.ts';
import { Refusal } from '../../http/refusal.ts';
import type { Identity } from '../auth/identity.ts';
import { mayActFor, mayActForAccount, type Role } from '../auth/ownership.ts';
import type { Cached } from '../caches/cached.ts';
import type { Caches } from '../caches/caches.ts';
import { spaceOf } from '../caches/indexes.ts';

/** Replaces an id with an id that does not exist. */
const NO_ID = '-';

/** Workspace that the caller has access to. */
export interface OwnedTenant {
  /** Public id `ten_…`. */
  readonly publicId: string;
  /** The name of the Workspace and of its namespace. */
  readonly name: string;
  readonly workspace: Cached<'Workspace'>;
  /** The caller role. */
  readonly role: Role;
}

/** The fields of an Integration that determine its state. */
export type Grant = Pick<Cached<'Integration'>, 'spec' | 'status'>;

/**
 * Returns what a workspace sees of an Integration that it was once granted, after the producer has deleted it or granted
 * it to another workspace.
 */
export function endedGrant(workspace: string): Grant {
  return { spec: { workspace, revoked: true } };
}

/** Returns true if the Integration exists and grants access to the workspace. */
export function isGrantedTo<I extends Cached<'Integration'>>(
  integration: I | undefined,
  workspace: string,
): integration is I {
  return integration?.spec.workspace === workspace;
}

/** Integration whose receiving workspace is owned by the caller. */
export interface OwnedIntegration {
  /** Public id `int_…`. */
  readonly publicId: string;
  /** The name of the producing workspace, where the Integration is located. */
  readonly producer: string;
  readonly producerPublicId: string;
  readonly name: string;
  readonly object: Grant;
  /** Receiving workspace. */
  readonly recipient: OwnedTenant;
}

/** Account that the caller has access to. */
export interface OwnedAccount {
  /** Public id `acc_…`. */
  readonly publicId: string;
  readonly name: string;
  readonly object: Cached<'Account'>;
  /** The caller role. */
  readonly role: Role;
}

/**
 * Ownership checks whether the caller may access a resource. The results are never cached. Note that any method can
 * throw a Refusal 403 `forbidden`. The current call pays for ids which are not in the cache or belong to another user.
 */
export interface Ownership {
  readonly tenant: (identity: Identity, id: string) => Promise<OwnedTenant>;
  readonly integration: (identity: Identity, id: string) => Promise<OwnedIntegration>;
  readonly account: (identity: Identity, id: string) => Promise<OwnedAccount>;
  /** Returns the role that the caller has for this workspace. Undefined if there is none. */
  readonly roleFor: (identity: Identity, workspace: Cached<'Workspace'>) => Promise<Role | undefined>;
}

type Reads = Pick<Caches, 'get' | 'by' | 'find' | 'findLive' | 'live'>;

function integrationOf(producer: string, name: string, object: Grant, recipient: OwnedTenant): OwnedIntegration {
  return {
    publicId: publicId('Integration', producer, name),
    producer,
    producerPublicId: tenantId(producer),
    name,
    object,
    recipient,
  };
}

/**
 * The response is the same whether an object does not exist or belongs to another user. To prevent callers from probing
 * for objects, we also make a lookup for cached objects, with the same cost and with an id that does not exist so that
 * both responses take equally long.
 */
async function forbidden(caches: Reads, kind: KindName, id: string, isCached: boolean): Promise<Refusal> {
  if (isCached) await caches.findLive(kind, `${id}${NO_ID}`);
  return new Refusal('forbidden');
}

export function createOwnership(caches: Reads): Ownership {
  const isCached = (kind: KindName, id: string) => caches.by(kind, 'publicId', id).length > 0;

  /** Reads an object that is not in the cache from the API server: another replica may just have created it. */
  async function present<K extends KindName>(kind: K, name: string): Promise<Cached<K> | undefined> {
    return caches.get(kind, { name }) ?? (await caches.live(kind, { name }));
  }

  async function roleFor(identity: Identity, workspace: Cached<'Workspace'>): Promise<Role | undefined> {
    return mayActFor(identity, workspace, await present('Account', workspace.spec.account));
  }

  /** Returns undefined if the caller does not have a role for the workspace. */
  async function owned(
    identity: Identity,
    workspace: Cached<'Workspace'> | undefined,
  ): Promise<OwnedTenant | undefined> {
    const role = workspace && (await roleFor(identity, workspace));
    if (workspace === undefined || role === undefined) return undefined;
    const { name } = workspace.metadata;
    return { publicId: tenantId(name), name, workspace, role };
  }

  /**
   * Returns the Integration that a subscription of the caller was admitted to. The producer has deleted it since, or has
   * granted it to another workspace. The response doesn't depend on which of the two is the case. A caller who also has
   * access to the new workspace doesn't get here.
   */
  async function leftBy(identity: Identity, id: string): Promise<OwnedIntegration | undefined> {
    const admitted = caches
      .by('Subscription', 'integrationId', id)
      .filter(({ status }) => status?.admittedAt !== undefined);
    const bySpace = new Map(admitted.map(each => [spaceOf(each), each.spec]));
    for (const [namespace, { producer, integration }] of bySpace) {
      const recipient = await owned(identity, await present('Workspace', namespace));
      if (recipient !== undefined) return integrationOf(producer, integration, endedGrant(namespace), recipient);
    }
    return undefined;
  }

  return {
    roleFor,
    async tenant(identity, id) {
      const known = isCached('Workspace', id);
      const tenant = await owned(identity, await caches.find('Workspace', id));
      if (tenant === undefined) throw await forbidden(caches, 'Workspace', id, known);
      return tenant;
    },
    async integration(identity, id) {
      let known = isCached('Integration', id);
      // Look for the deleted Integration in the subscriptions first, so that not every call and every check of a
      // waiting call asks the API server for it.
      const deleted = known ? undefined : await leftBy(identity, id);
      if (deleted !== undefined) return deleted;
      let object = await caches.find('Integration', id);
      // The cache may not contain the acceptance yet.
      if (object !== undefined && object.spec.workspace === undefined && known) {
        known = false;
        object = await caches.findLive('Integration', id);
      }
      const granted = object?.spec.workspace;
      const receiver = granted === undefined ? undefined : await present('Workspace', granted);
      const recipient = await owned(identity, receiver);
      if (object !== undefined && recipient !== undefined) {
        return integrationOf(object.metadata.namespace ?? '', object.metadata.name, object, recipient);
      }
      const regranted = await leftBy(identity, id);
      if (regranted !== undefined) return regranted;
      throw await forbidden(caches, 'Integration', id, known);
    },
    async account(identity, id) {
      const known = isCached('Account', id);
      const object = await caches.find('Account', id);
      const role = object && mayActForAccount(identity, object);
      if (object === undefined || role === undefined) throw await forbidden(caches, 'Account', id, known);
      return { publicId: id, name: object.metadata.name, object, role };
    },
  };
}
