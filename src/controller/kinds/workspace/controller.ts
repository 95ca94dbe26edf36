import { PAUSABLE, unlessPaused } from '../../context/paused.ts';
import { createKindController } from '../../engine/kind-controller.ts';
import type { CreateControllers } from '../kind.ts';
import { createIngressKeyWatch } from './ingress-key-watch.ts';
import { finalizeWorkspace, reconcileWorkspace } from './reconcile.ts';
import { workspaceSources } from './sources.ts';

export const createWorkspaceControllers: CreateControllers = ({ context, dataPlane, engine }) => [
  createKindController({
    ...engine('workspace', 4),
    reflector: context.caches.Workspace,
    reconcile: unlessPaused(context, PAUSABLE.Workspace, reconcileWorkspace(context)),
    finalize: finalizeWorkspace(context),
    sources: [...workspaceSources(context.caches), dataPlane.source],
  }),
  createIngressKeyWatch(engine('ingresskey', 1), context.caches),
];
