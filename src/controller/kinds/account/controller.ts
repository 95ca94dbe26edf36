import { createKindController } from '../../engine/kind-controller.ts';
import type { CreateControllers } from '../kind.ts';
import { registerLimitMetrics } from './limit-metrics.ts';
import { createLimitUse } from './limit-use.ts';
import { finalizeAccount, reconcileAccount } from './reconcile.ts';
import { accountSources } from './sources.ts';

export const createAccountControllers: CreateControllers = ({ context, registry, engine }) => {
  const limitUse = createLimitUse(context.caches, context.limits);
  registerLimitMetrics(registry, limitUse, () => context.caches.Account.store.values());
  return [
    createKindController({
      ...engine('account', 2),
      reflector: context.caches.Account,
      reconcile: reconcileAccount({ ...context, limitUse }),
      finalize: finalizeAccount({ ...context, limitUse }),
      sources: [...accountSources(context.caches), limitUse.source],
    }),
  ];
};
