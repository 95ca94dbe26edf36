import { createKindController } from '../../engine/kind-controller.ts';
import type { CreateControllers } from '../kind.ts';
import { createLimitUse } from './limit-use.ts';
import { finalizeAccount, reconcileAccount } from './reconcile.ts';
import { accountSources } from './sources.ts';

export const createAccountControllers: CreateControllers = ({ context, limitPolicy, engine }) => {
  const limitUse = createLimitUse(context.caches, limitPolicy);
  return [
    createKindController({
      ...engine('account', 1),
      reflector: context.caches.Account,
      reconcile: reconcileAccount({ ...context, limitUse }),
      finalize: finalizeAccount({ ...context, limitUse }),
      sources: [...accountSources(context.caches), limitUse.source],
    }),
  ];
};
