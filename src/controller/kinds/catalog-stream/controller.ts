import { fromWorkspaces } from '../../caches/related-keys.ts';
import { finalizeUnlessPaused, PAUSABLE, unlessPaused } from '../../context/paused.ts';
import { createKindController } from '../../engine/kind-controller.ts';
import { type CreateControllers, WAITING_WORKERS } from '../kind.ts';
import { finalizeStream, reconcileStream } from './reconcile.ts';

export const createStreamControllers: CreateControllers = ({ context, engine }) => [
  createKindController({
    ...engine('catalogstream', WAITING_WORKERS),
    reflector: context.caches.CatalogStream,
    reconcile: unlessPaused(context, PAUSABLE.CatalogStream, reconcileStream(context)),
    finalize: finalizeUnlessPaused(context, PAUSABLE.CatalogStream, finalizeStream(context)),
    sources: [fromWorkspaces(context.caches, 'CatalogStream')],
  }),
];
