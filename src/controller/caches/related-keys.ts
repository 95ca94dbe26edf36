import { type AnyObject, keyOf } from '../../kube/object.ts';
import { addChanged, type KeySource, keysFrom } from '../engine/keyed-controller.ts';
import type { Caches } from './caches.ts';

/** Kinds which belong to the workspace of their namespace, using a separate key for each object. */
type KindOfWorkspace = 'CatalogStream' | 'Package' | 'Integration' | 'Block';

/** Returns true if the object was created or deleted. Returns false for an update. */
export function isCreatedOrDeleted(old: unknown, current: unknown): boolean {
  return old === undefined || current === undefined;
}

/** Returns the key of the object that was changed. */
export function keyOfChanged(old: AnyObject | undefined, current: AnyObject | undefined): string[] {
  const object = current ?? old;
  return object === undefined ? [] : [keyOf(object.metadata)];
}

/** Returns the namespace of the object that was changed. */
export function namespaceOfChanged(old: AnyObject | undefined, current: AnyObject | undefined): string[] {
  const object = current ?? old;
  return object === undefined ? [] : [object.metadata.namespace ?? ''];
}

/** Returns the keys of all objects of a kind that are in the given namespace. */
export function keysInNamespace(caches: Caches, kind: KindOfWorkspace, namespace: string): string[] {
  return caches[kind].store.byIndex('namespace', namespace).map(({ metadata }) => keyOf(metadata));
}

/** Returns all workspaces belonging to the given account. */
export function workspacesOf(caches: Pick<Caches, 'Workspace'>, account: string): string[] {
  return caches.Workspace.store.byIndex('account', account).map(({ metadata }) => metadata.name);
}

/**
 * Maps a changed namespace to the workspace with the same name. After removing the label, the namespace no longer
 * belongs to the workspace.
 */
export function fromNamespaces({ namespaces }: Pick<Caches, 'namespaces'>): KeySource {
  return keysFrom(namespaces, (old, current) =>
    [old, current].flatMap(each => (each === undefined ? [] : [each.workspace])),
  );
}

/** Maps a created or deleted workspace to its objects of the given kind. */
export function fromWorkspaces(caches: Caches, kind: KindOfWorkspace): KeySource {
  return keysFrom(caches.Workspace, (old, current) =>
    isCreatedOrDeleted(old, current)
      ? keyOfChanged(old, current).flatMap(name => keysInNamespace(caches, kind, name))
      : [],
  );
}

/**
 * Returns a source with a namespace's keys. The keys are enqueued when the namespace gets or loses the label of its own
 * workspace.
 */
export function fromAdoptions(
  { namespaces }: Pick<Caches, 'namespaces'>,
  keysIn: (namespace: string) => Iterable<string>,
): KeySource {
  return {
    reflector: namespaces,
    keys: () => [],
    subscribe: add =>
      namespaces.subscribe((_change, namespace, old, current) => {
        if ((old?.workspace === namespace) === (current?.workspace === namespace)) return;
        addChanged(keysIn(namespace), add);
      }),
  };
}

/** Returns the keys of all objects that own the changed Secret, or owned it before. */
export function ownersOf(
  old: { readonly namespace: string; readonly owner: string | undefined } | undefined,
  current: typeof old,
): string[] {
  return [old, current].flatMap(each => (each?.owner === undefined ? [] : [`${each.namespace}/${each.owner}`]));
}
