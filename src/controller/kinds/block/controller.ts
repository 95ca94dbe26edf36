import { createKindController } from '../../engine/kind-controller.ts';
import { type CreateControllers, WAITING_WORKERS } from '../kind.ts';
import { reconcileBlock } from './reconcile.ts';
import { blockSources } from './sources.ts';

export const createBlockControllers: CreateControllers = ({ context, engine }) => [
  createKindController({
    ...engine('block', WAITING_WORKERS),
    reflector: context.caches.Block,
    reconcile: reconcileBlock(context),
    sources: blockSources(context.caches),
  }),
];
