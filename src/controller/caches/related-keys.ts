import { type AnyObject, keyOf } from '../../kube/object.ts';
import { type KeySource, keysFrom } from '../engine/keyed-controller.ts';
import type { Caches } from './caches.ts';

/** Kinds with one controller key an object that belong to the workspace of their namespace. */
type KindOfWorkspace = 'CatalogStream' | 'Package' | 'Integration' | 'Block';

/** Returns whether the object was created or deleted, as opposed to edited. */
export function isCreatedOrDeleted(old: unknown, current: unknown): boolean {
  return old === undefined || current === undefined;
}

/** Returns the key of the changed object. */
export function keyOfChanged(old: AnyObject | undefined, current: AnyObject | undefined): string[] {
  const object = current ?? old;
  return object === undefined ? [] : [keyOf(object.metadata)];
}

/** Returns the namespace of the changed object. */
export function namespaceOfChanged(old: AnyObject | undefined, current: AnyObject | undefined): string[] {
  const object = current ?? old;
  return object === undefined ? [] : [object.metadata.namespace ?? ''];
}

/** Returns the keys of all objects of a kind in a namespace. */
export function keysInNamespace(caches: Caches, kind: KindOfWorkspace, namespace: string): string[] {
  return caches[kind].store.byIndex('namespace', namespace).map(({ metadata }) => keyOf(metadata));
}

/** Returns the workspaces that an account pays for. */
export function workspacesOf(caches: Pick<Caches, 'Workspace'>, account: string): string[] {
  return caches.Workspace.store.byIndex('account', account).map(({ metadata }) => metadata.name);
}

/**
 * Returns the workspace of each changed namespace, which has the same name. A namespace that lost its label does not
 * belong to it any more.
 */
export function fromNamespaces({ namespaces }: Pick<Caches, 'namespaces'>): KeySource {
  return keysFrom(namespaces, (old, current) =>
    [old, current].flatMap(each => (each === undefined ? [] : [each.workspace])),
  );
}

/** Returns the objects of a kind in each workspace that was created or deleted. */
export function fromWorkspaces(caches: Caches, kind: KindOfWorkspace): KeySource {
  return keysFrom(caches.Workspace, (old, current) =>
    isCreatedOrDeleted(old, current)
      ? keyOfChanged(old, current).flatMap(name => keysInNamespace(caches, kind, name))
      : [],
  );
}

/** Returns the objects that own the changed Secrets. */
export function ownersOf(
  old: { readonly namespace: string; readonly owner: string | undefined } | undefined,
  current: typeof old,
): string[] {
  const { namespace, owner } = current ?? old ?? {};
  return owner === undefined ? [] : [`${namespace}/${owner}`];
}
