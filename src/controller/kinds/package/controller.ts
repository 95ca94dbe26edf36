import { PAUSABLE, unlessPaused } from '../../context/paused.ts';
import { createKindController } from '../../engine/kind-controller.ts';
import { type CreateControllers, WAITING_WORKERS } from '../kind.ts';
import { finalizePackage, reconcilePackage } from './reconcile.ts';
import { packageSources } from './sources.ts';

export const createPackageControllers: CreateControllers = ({ context, engine }) => [
  createKindController({
    ...engine('package', WAITING_WORKERS),
    reflector: context.caches.Package,
    reconcile: unlessPaused(context, PAUSABLE.Package, reconcilePackage(context)),
    finalize: finalizePackage(context),
    sources: packageSources(context.caches),
  }),
];
