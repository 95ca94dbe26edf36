import { PAUSABLE, unlessPaused } from '../../context/paused.ts';
import { createKindController } from '../../engine/kind-controller.ts';
import { type CreateControllers, WAITING_WORKERS } from '../kind.ts';
import { finalizePackage, reconcilePackage } from './reconcile.ts';

export const createPackageControllers: CreateControllers = ({ room, sources, engine }) => [
  createKindController({
    ...engine('package', WAITING_WORKERS),
    reflector: room.world.Package,
    reconcile: unlessPaused(room, PAUSABLE.Package, reconcilePackage(room)),
    finalize: finalizePackage(room),
    sources: [sources.inWorkspace('Package'), ...sources.package],
  }),
];
