import { createKindController } from '../../engine/kind-controller.ts';
import type { CreateControllers } from '../kind.ts';
import { reconcileAccount } from './reconcile.ts';

export const createAccountControllers: CreateControllers = ({ room, engine }) => [
  createKindController({
    ...engine('account', 1),
    reflector: room.world.Account,
    reconcile: reconcileAccount(room),
  }),
];
