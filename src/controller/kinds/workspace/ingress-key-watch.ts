import { type AnyObject, keyOf } from '../../../kube/object.ts';
import { SECRETS } from '../../../kube/resource.ts';
import type { Caches } from '../../caches/caches.ts';
import type { EventRecorder } from '../../engine/event-recorder.ts';
import {
  type Controller,
  createKeyedController,
  type KeyedControllerOptions,
  keysFrom,
} from '../../engine/keyed-controller.ts';

/**
 * Creates a controller to record a Warning Event, including the reason, for each ingress key Secret that can't be used.
 */
export function createIngressKeyWatch(
  engine: Omit<KeyedControllerOptions, 'reconcile'> & { readonly events: Pick<EventRecorder, 'record'> },
  { ingressKeys }: Pick<Caches, 'ingressKeys'>,
): Controller {
  return createKeyedController({
    ...engine,
    reconcile: async key => {
      const { unusable } = ingressKeys.store.get(key) ?? {};
      if (unusable === undefined) return;
      const note = { type: 'Warning', reason: 'UnusableIngressKey', message: unusable.message } as const;
      engine.events.record({ resource: SECRETS, metadata: unusable.metadata }, note);
    },
    sources: [
      keysFrom(ingressKeys, (_old, current) =>
        current?.unusable === undefined ? [] : [keyOf(current.unusable.metadata as AnyObject['metadata'])],
      ),
    ],
  });
}
