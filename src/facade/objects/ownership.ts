import type { KindName } from '../../api/kinds/kinds.ts';
import { publicId, tenantId } from '../../core/ids/ids.ts';
import { Refusal } from '../../http/refusal.ts';
import type { Identity } from '../auth/identity.ts';
import { mayActFor, mayActForAccount } from '../auth/ownership.ts';
import type { Cached } from './cached.ts';
import type { Caches } from './caches.ts';

/** Workspace that the caller has access to. */
export interface OwnedTenant {
  /** Public id `ten_…`. */
  readonly publicId: string;
  /** Name of the Workspace and of its namespace. */
  readonly name: string;
  readonly workspace: Cached<'Workspace'>;
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
}

/**
 * Ownership checks whether the caller may access a resource. Results are not cached. Note that any method can throw a
 * Refusal 403 `forbidden`.
 */
export interface Ownership {
  readonly tenant: (identity: Identity, id: string) => Promise<OwnedTenant>;
  readonly integration: (identity: Identity, id: string) => Promise<OwnedIntegration>;
  readonly account: (identity: Identity, id: string) => Promise<OwnedAccount>;
  /** Returns true if the caller may act for the workspace. */
  readonly owns: (identity: Identity, workspace: Cached<'Workspace'>) => Promise<boolean>;
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

  async function owns(identity: Identity, workspace: Cached<'Workspace'>): Promise<boolean> {
    const account = await present('Account', workspace.spec.account);
    return mayActFor(identity, workspace, account) !== undefined;
  }

  const owned = (workspace: Cached<'Workspace'>): OwnedTenant => ({
    publicId: tenantId(workspace.metadata.name),
    name: workspace.metadata.name,
    workspace,
  });

  return {
    owns,
    async tenant(identity, id) {
      const workspace = await caches.find('Workspace', id);
      if (workspace === undefined || !(await owns(identity, workspace))) {
        throw await forbidden('Workspace', id, workspace);
      }
      return owned(workspace);
    },
    async integration(identity, id) {
      const found = await caches.find('Integration', id);
      if (found === undefined) throw await forbidden('Integration', id, found);
      let object: typeof found | undefined = found;
      const { namespace = '', name } = object.metadata;
      // The acceptance may not have reached the cache yet.
      if (object.spec.workspace === undefined) object = await caches.live('Integration', { namespace, name });
      const recipient = object?.spec.workspace;
      const workspace = recipient === undefined ? undefined : await present('Workspace', recipient);
      if (object === undefined || workspace === undefined || !(await owns(identity, workspace))) {
        throw await forbidden('Integration', id, found);
      }
      return {
        publicId: publicId('Integration', namespace, name),
        producer: namespace,
        producerPublicId: tenantId(namespace),
        name,
        object,
        recipient: owned(workspace),
      };
    },
    async account(identity, id) {
      const object = await caches.find('Account', id);
      if (object === undefined || mayActForAccount(identity, object) === undefined) {
        throw await forbidden('Account', id, object);
      }
      return { publicId: id, name: object.metadata.name, object };
    },
  };
}
