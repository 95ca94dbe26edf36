import { PAUSABLE, unlessPaused } from '../../context/paused.ts';
import { createKeyedController } from '../../engine/keyed-controller.ts';
import { createKindController } from '../../engine/kind-controller.ts';
import { type CreateControllers, WAITING_WORKERS } from '../kind.ts';
import { DELIVERY_RETRY, deliverInvitation } from './deliver.ts';
import { createDeliveries } from './deliveries.ts';
import { createInvitationMetrics } from './invitation-metrics.ts';
import { createMailLimit } from './mail-limit.ts';
import { isEnded, reconcileIntegration } from './reconcile.ts';
import { integrationSources, invitationSources } from './sources.ts';

/** Creates two controllers. One controller reconciles integrations, and the other one sends their invitations. */
export const createIntegrationControllers: CreateControllers = parts => {
  const { context, engine } = parts;
  const deliveries = createDeliveries();
  const integrations = createKindController({
    ...engine('integration', WAITING_WORKERS),
    reflector: context.caches.Integration,
    reconcile: unlessPaused(context, PAUSABLE.Integration, reconcileIntegration({ ...context, deliveries }), {
      closes: isEnded,
    }),
    sources: integrationSources(context.caches),
  });
  const invitations = createKeyedController({
    ...engine('invitation', 2),
    retry: DELIVERY_RETRY,
    reconcile: deliverInvitation(context, {
      sendInvitation: parts.sendInvitation,
      deliveries,
      mailLimit: createMailLimit(context),
      onResult: key => integrations.enqueue(key),
      metrics: createInvitationMetrics(parts.registry),
    }),
    sources: invitationSources(context.caches, context.limits),
  });
  return [integrations, invitations];
};
