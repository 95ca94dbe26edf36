import { type AnyObject, keyOf } from '../../../kube/object.ts';
import { type Cached, type Caches, pairKeyOf } from '../../caches/caches.ts';
import { fromAdoptions, isCreatedOrDeleted, keyOfChanged } from '../../caches/related-keys.ts';
import { changedKeysFrom, type KeySource, keysFrom } from '../../engine/keyed-controller.ts';

/**
 * Returns the sources for pair keys. A pair is enqueued when one of its Activations changes (unless the change was made
 * by the controller), when the state of its integration changes, when its workspace is created or deleted, or when its
 * namespace gets or loses the workspace's label.
 */
export function pairSources(
  caches: Caches,
  isEcho: (old: AnyObject | undefined, current: AnyObject) => boolean,
): readonly KeySource[] {
  const { store } = caches.Activation;
  function* pairKeysIn(namespaces: Iterable<string>): Generator<string> {
    for (const namespace of namespaces) yield* pairKeysOf(store.eachByIndex('namespace', namespace));
  }
  return [
    keysFrom(caches.Activation, (old, current) => {
      if (current !== undefined && isEcho(old, current)) return [];
      return [old, current].flatMap(each => (each === undefined ? [] : [pairKeyOf(each)]));
    }),
    changedKeysFrom(caches.Integration, (old, current) => {
      const object = current ?? old;
      if (object === undefined) return [];
      if (!isCreatedOrDeleted(old, current) && acceptedReason(old) === acceptedReason(current)) return [];
      return pairKeysOf(store.eachByIndex('integration', keyOf(object.metadata)));
    }),
    changedKeysFrom(caches.Workspace, (old, current) =>
      isCreatedOrDeleted(old, current) ? pairKeysIn(keyOfChanged(old, current)) : [],
    ),
    fromAdoptions(caches, namespace => pairKeysIn([namespace])),
  ];
}

/** Yields the key of each Activation's pair. There may be 100,000 of them. */
function* pairKeysOf(activations: Iterable<Cached<'Activation'>>): Generator<string> {
  for (const activation of activations) yield pairKeyOf(activation);
}

function acceptedReason(integration: Cached<'Integration'> | undefined): string | undefined {
  return integration?.status?.conditions?.find(({ type }) => type === 'Accepted')?.reason;
}
