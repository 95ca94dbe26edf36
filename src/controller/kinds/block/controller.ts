import { createKindController } from '../../engine/kind-controller.ts';
import { type CreateControllers, WAITING_WORKERS } from '../kind.ts';
import { reconcileBlock } from './reconcile.ts';

export const createBlockControllers: CreateControllers = ({ room, sources, engine }) => [
  createKindController({
    ...engine('block', WAITING_WORKERS),
    reflector: room.world.Block,
    reconcile: reconcileBlock(room),
    sources: [sources.inWorkspace('Block'), ...sources.block],
  }),
];
