import { resourceOf } from '../../../kube/resource.ts';
import type { Cached } from '../../caches/caches.ts';
import { createKeyedController } from '../../engine/keyed-controller.ts';
import { type CommonStatus, createStatusWriter } from '../../engine/status-writer.ts';
import type { CreateControllers } from '../kind.ts';
import { pairSelection } from './pair-selection.ts';
import { reconcilePair } from './reconcile.ts';
import { type OwnedActivation, removeRevoked } from './removal.ts';
import { pairSources } from './sources.ts';

/**
 * Creates two controllers: one to open and close the gates of pairs, and one to remove Activations which were revoked
 * through the REST API a long time ago.
 *
 * We can't use the engine's kind controller here because it reconciles objects one by one. All Activations of a pair
 * need to be considered together. A deleted Activation must still close the gate. In addition, it would require a
 * finalizer and Events for up to 100,000 Activations, which is too expensive.
 */
export const createActivationControllers: CreateControllers = ({ context, client, engine }) => {
  const { caches, wallMs } = context;
  const resource = resourceOf('Activation');
  const status = createStatusWriter<Cached<'Activation'>['spec'], CommonStatus>({ client, resource, wallMs });
  return [
    createKeyedController({
      ...engine('activation', 8),
      reconcile: reconcilePair(context, status),
      isDeletion: pair => isClosing(caches.Activation.store.byIndex('pair', pair)),
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

/** Returns true if the gate of a pair is closed by its Activations (if there are any). */
function isClosing(activations: readonly Cached<'Activation'>[]): boolean {
  return activations.length === 0 || activations.some(({ spec }) => spec.revoked === true);
}
