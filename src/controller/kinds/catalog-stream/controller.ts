import { finalizeUnlessPaused, PAUSABLE, unlessPaused } from '../../context/paused.ts';
import { createKindController } from '../../engine/kind-controller.ts';
import { type CreateControllers, WAITING_WORKERS } from '../kind.ts';
import { finalizeStream, reconcileStream } from './reconcile.ts';

export const createStreamControllers: CreateControllers = ({ room, sources, engine }) => [
  createKindController({
    ...engine('catalogstream', WAITING_WORKERS),
    reflector: room.world.CatalogStream,
    reconcile: unlessPaused(room, PAUSABLE.CatalogStream, reconcileStream(room)),
    finalize: finalizeUnlessPaused(room, PAUSABLE.CatalogStream, finalizeStream(room)),
    sources: [sources.inWorkspace('CatalogStream')],
  }),
];
