import { createKindController } from '../../engine/kind-controller.ts';
import type { CreateControllers } from '../kind.ts';
import { reconcileAccount } from './reconcile.ts';

export const createAccountControllers: CreateControllers = ({ context, engine }) => [
  createKindController({
    ...engine('account', 1),
    reflector: context.caches.Account,
    reconcile: reconcileAccount(context),
  }),
];
