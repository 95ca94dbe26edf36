import { createKindController } from '../../engine/kind-controller.ts';
import { type CreateControllers, WAITING_WORKERS } from '../kind.ts';
import { reconcileBlock } from './reconcile.ts';

export const createBlockControllers: CreateControllers = ({ context, sources, engine }) => [
  createKindController({
    ...engine('block', WAITING_WORKERS),
    reflector: context.caches.Block,
    reconcile: reconcileBlock(context),
    sources: [sources.inWorkspace('Block'), ...sources.block],
  }),
];
