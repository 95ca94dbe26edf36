import { createKindController } from '../../engine/kind-controller.ts';
import { type CreateControllers, WAITING_WORKERS } from '../kind.ts';
import { finalizeSubscription, reconcileSubscription } from './reconcile.ts';
import type { SubscriptionServices } from './services.ts';
import { shownReason } from './shown-reason.ts';

export function createSubscriptionControllers(services: SubscriptionServices): CreateControllers {
  const { endpointHealths, showing } = services;
  return ({ room, sources, engine }) => [
    createKindController({
      ...engine('subscription', WAITING_WORKERS),
      reflector: room.world.Subscription,
      reconcile: showing.show(reconcileSubscription({ ...room, endpointHealths })),
      fieldsOf: shownReason,
      finalize: finalizeSubscription(room),
      sources: sources.subscription,
    }),
  ];
}
