import type { KubeClient } from '../../../kube/client.ts';
import { type Cached, resourceOf } from '../../caches/caches.ts';
import type { Sources } from '../../caches/watches.ts';
import type { Room } from '../../context/context.ts';
import { type Controller, createKeyedController, type KeyedControllerOptions } from '../../engine/keyed-controller.ts';
import { type CommonStatus, createStatusWriter } from '../../engine/status-writer.ts';
import { pairSelection } from './pair-selection.ts';
import { reconcilePair } from './reconcile.ts';
import { type OwnedActivation, removeRevoked } from './removal.ts';

type Engine = Omit<KeyedControllerOptions, 'reconcile' | 'sources' | 'keys'>;

/** One of the pairs' gates, one that removes what REST revoked long ago. */
export function createActivationControllers(
  room: Room,
  client: KubeClient,
  engine: (name: string, workers: number) => Engine,
  sources: Sources,
): { readonly activations: Controller; readonly revoked: Controller } {
  const { world, wallMs } = room;
  const resource = resourceOf('Activation');
  const status = createStatusWriter<Cached<'Activation'>['spec'], CommonStatus>({ client, resource, wallMs });
  return {
    activations: createKeyedController({
      ...engine('activation', 8),
      reconcile: reconcilePair(room, status),
      sources: sources.pair(status.takeEcho),
    }),
    revoked: createKeyedController({
      ...engine('revoked-activation', 1),
      keys: () => ['all'],
      reconcile: removeRevoked({
        world,
        readPair: async pair =>
          (await client.list(resource, (object: OwnedActivation) => object, pairSelection(pair))).items,
        remove: client.remove,
        wallMs,
      }),
    }),
  };
}
