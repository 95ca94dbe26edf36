import { createKindController } from '../../engine/kind-controller.ts';
import { type CreateControllers, WAITING_WORKERS } from '../kind.ts';
import { finalizeSubscription, reconcileSubscription } from './reconcile.ts';
import type { SubscriptionServices } from './services.ts';
import { shownReason } from './shown-reason.ts';
import { subscriptionSources } from './sources.ts';

export function createSubscriptionControllers(services: SubscriptionServices): CreateControllers {
  const { endpointHealths, showing } = services;
  return ({ context, engine }) => [
    createKindController({
      ...engine('subscription', WAITING_WORKERS),
      reflector: context.caches.Subscription,
      reconcile: showing.show(reconcileSubscription({ ...context, endpointHealths })),
      fieldsOf: shownReason,
      finalize: finalizeSubscription(context),
      sources: subscriptionSources(context.caches),
    }),
  ];
}
