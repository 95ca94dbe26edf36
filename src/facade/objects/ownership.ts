import type { KindName } from '../../api/kinds/kinds.ts';
import { publicId, tenantId } from '../../core/ids/ids.ts';
import { Refusal } from '../../http/refusal.ts';
import type { Identity } from '../auth/identity.ts';
import { mayActFor, mayActForAccount, type Role } from '../auth/ownership.ts';
import type { Cached } from './cached.ts';
import type { Caches } from './caches.ts';

/** Workspace that the caller has access to. */
export interface OwnedTenant {
  /** Public id `ten_…`. */
  readonly publicId: string;
  /** Name of the Workspace and of its namespace. */
  readonly name: string;
  readonly workspace: Cached<'Workspace'>;
  /** Role of the caller. */
  readonly role: Role;
}

/** Integration whose receiving workspace is owned by the caller. */
export interface OwnedIntegration {
  /** Public id `int_…`. */
  readonly publicId: string;
  /** Name of the producing workspace, where the Integration is located. */
  readonly producer: string;
  readonly producerPublicId: string;
  readonly name: string;
  readonly object: Cached<'Integration'>;
  /** Receiving workspace. */
  readonly recipient: OwnedTenant;
}

/** Account that the caller has access to. */
export interface OwnedAccount {
  /** Public id `acc_…`. */
  readonly publicId: string;
  readonly name: string;
  readonly object: Cached<'Account'>;
  /** Role of the caller. */
  readonly role: Role;
}

/**
 * Ownership checks whether the caller may access a resource. Results are not cached. Note that any method can throw a
 * Refusal 403 `forbidden`.
 */
export interface Ownership {
  readonly tenant: (identity: Identity, id: string) => Promise<OwnedTenant>;
  readonly integration: (identity: Identity, id: string) => Promise<OwnedIntegration>;
  readonly account: (identity: Identity, id: string) => Promise<OwnedAccount>;
  /** Returns the role of the caller for the workspace, or undefined if there is none. */
  readonly roleFor: (identity: Identity, workspace: Cached<'Workspace'>) => Promise<Role | undefined>;
}

export function createOwnership(caches: Pick<Caches, 'get' | 'find' | 'findLive' | 'live'>): Ownership {
  /**
   * Gives the same answer whether an object does not exist or belongs to someone else. To prevent callers from probing
   * for objects, we make the same lookup for cached objects too, so that both answers take equally long.
   */
  async function forbidden(kind: KindName, id: string, found: Cached<KindName> | undefined): Promise<Refusal> {
    if (found !== undefined) await caches.findLive(kind, id);
    return new Refusal('forbidden');
  }

  /** Returns an object from the cache, or from the API server in case another replica has just created it. */
  async function present<K extends KindName>(kind: K, name: string): Promise<Cached<K> | undefined> {
    return caches.get(kind, { name }) ?? (await caches.live(kind, { name }));
  }

  async function roleFor(identity: Identity, workspace: Cached<'Workspace'>): Promise<Role | undefined> {
    return mayActFor(identity, workspace, await present('Account', workspace.spec.account));
  }

  /** Returns undefined if the caller has no role for the workspace. */
  async function owned(
    identity: Identity,
    workspace: Cached<'Workspace'> | undefined,
  ): Promise<OwnedTenant | undefined> {
    const role = workspace && (await roleFor(identity, workspace));
    if (workspace === undefined || role === undefined) return undefined;
    const { name } = workspace.metadata;
    return { publicId: tenantId(name), name, workspace, role };
  }

  return {
    roleFor,
    async tenant(identity, id) {
      const workspace = await caches.find('Workspace', id);
      const tenant = await owned(identity, workspace);
      if (tenant === undefined) throw await forbidden('Workspace', id, workspace);
      return tenant;
    },
    async integration(identity, id) {
      const found = await caches.find('Integration', id);
      if (found === undefined) throw await forbidden('Integration', id, found);
      let object: typeof found | undefined = found;
      const { namespace = '', name } = object.metadata;
      // The acceptance may not have reached the cache yet.
      if (object.spec.workspace === undefined) object = await caches.live('Integration', { namespace, name });
      const granted = object?.spec.workspace;
      const recipient = await owned(identity, granted === undefined ? undefined : await present('Workspace', granted));
      if (object === undefined || recipient === undefined) throw await forbidden('Integration', id, found);
      return {
        publicId: publicId('Integration', namespace, name),
        producer: namespace,
        producerPublicId: tenantId(namespace),
        name,
        object,
        recipient,
      };
    },
    async account(identity, id) {
      const object = await caches.find('Account', id);
      const role = object && mayActForAccount(identity, object);
      if (object === undefined || role === undefined) throw await forbidden('Account', id, object);
      return { publicId: id, name: object.metadata.name, object, role };
    },
  };
}
