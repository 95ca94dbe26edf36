import { type AnyObject, keyOf } from '../../../kube/object.ts';
import { type Cached, type Caches, pairKeyOf } from '../../caches/caches.ts';
import { isCreatedOrDeleted, keyOfChanged } from '../../caches/related-keys.ts';
import { type KeySource, keysFrom } from '../../engine/keyed-controller.ts';

/**
 * Returns the sources that are used for the keys of pairs. A pair is enqueued if one of its Activations has changed
 * (unless this was done by the controller), if the state of its integration has changed, or if its workspace was
 * created or deleted.
 */
export function pairSources(
  caches: Caches,
  isEcho: (old: AnyObject | undefined, current: AnyObject) => boolean,
): readonly KeySource[] {
  const { store } = caches.Activation;
  return [
    keysFrom(caches.Activation, (old, current) => {
      if (current !== undefined && isEcho(old, current)) return [];
      return [old, current].flatMap(each => (each === undefined ? [] : [pairKeyOf(each)]));
    }),
    keysFrom(caches.Integration, (old, current) => {
      const object = current ?? old;
      if (object === undefined) return [];
      if (!isCreatedOrDeleted(old, current) && acceptedReason(old) === acceptedReason(current)) return [];
      return store.byIndex('integration', keyOf(object.metadata)).map(pairKeyOf);
    }),
    keysFrom(caches.Workspace, (old, current) =>
      isCreatedOrDeleted(old, current)
        ? keyOfChanged(old, current).flatMap(name => store.byIndex('namespace', name).map(pairKeyOf))
        : [],
    ),
  ];
}

function acceptedReason(integration: Cached<'Integration'> | undefined): string | undefined {
  return integration?.status?.conditions?.find(({ type }) => type === 'Accepted')?.reason;
}
