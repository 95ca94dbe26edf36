import { type Cached, resourceOf } from '../../caches/caches.ts';
import { createKeyedController } from '../../engine/keyed-controller.ts';
import { type CommonStatus, createStatusWriter } from '../../engine/status-writer.ts';
import type { CreateControllers } from '../kind.ts';
import { pairSelection } from './pair-selection.ts';
import { reconcilePair } from './reconcile.ts';
import { type OwnedActivation, removeRevoked } from './removal.ts';
import { pairSources } from './sources.ts';

/**
 * Creates two controllers. The first one opens and closes the gates of the pairs. The second one removes Activations
 * that were revoked through the REST API a long time ago.
 *
 * We do not use the kind controller of the engine, because it reconciles one object at a time. All Activations of a
 * pair must be considered together, and a deleted Activation must still close the gate. The kind controller would also
 * need a finalizer and Events for each of 100,000 Activations, which would be too expensive.
 */
export const createActivationControllers: CreateControllers = ({ context, client, engine }) => {
  const { caches, wallMs } = context;
  const resource = resourceOf('Activation');
  const status = createStatusWriter<Cached<'Activation'>['spec'], CommonStatus>({ client, resource, wallMs });
  return [
    createKeyedController({
      ...engine('activation', 8),
      reconcile: reconcilePair(context, status),
      sources: pairSources(caches, status.takeEcho),
    }),
    createKeyedController({
      ...engine('revoked-activation', 1),
      keys: () => ['all'],
      reconcile: removeRevoked({
        caches,
        readPair: async pair =>
          (await client.list(resource, (object: OwnedActivation) => object, pairSelection(pair))).items,
        remove: client.remove,
        wallMs,
      }),
    }),
  ];
};
