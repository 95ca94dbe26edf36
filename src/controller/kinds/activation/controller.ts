import { type Cached, resourceOf } from '../../caches/caches.ts';
import { createKeyedController } from '../../engine/keyed-controller.ts';
import { type CommonStatus, createStatusWriter } from '../../engine/status-writer.ts';
import type { CreateControllers } from '../kind.ts';
import { pairSelection } from './pair-selection.ts';
import { reconcilePair } from './reconcile.ts';
import { type OwnedActivation, removeRevoked } from './removal.ts';
import { pairSources } from './sources.ts';

/**
 * Creates two controllers: one for the gates of the pairs, one that removes Activations that REST revoked long ago.
 *
 * The engine's kind controller does not fit: it reconciles one object at a time and skips a deleted one without a
 * finalizer, but all Activations of a pair decide on one gate together, and a deleted one closes it. A finalizer and
 * Events for each of 100,000 Activations would cost too much.
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
