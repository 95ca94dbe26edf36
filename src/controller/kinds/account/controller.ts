import { createKindController } from '../../engine/kind-controller.ts';
import type { CreateControllers } from '../kind.ts';
import { finalizeAccount, reconcileAccount } from './reconcile.ts';
import { accountSources } from './sources.ts';

export const createAccountControllers: CreateControllers = ({ context, engine }) => [
  createKindController({
    ...engine('account', 1),
    reflector: context.caches.Account,
    reconcile: reconcileAccount(context),
    finalize: finalizeAccount(context),
    sources: accountSources(context.caches),
  }),
];
