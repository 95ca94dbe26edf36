import { PAUSABLE, unlessPaused } from '../../context/paused.ts';
import { createKindController } from '../../engine/kind-controller.ts';
import type { CreateControllers } from '../kind.ts';
import { createIngressKeyWatch } from './ingress-key-watch.ts';
import { finalizeWorkspace, reconcileWorkspace } from './reconcile.ts';

export const createWorkspaceControllers: CreateControllers = ({ room, dataPlane, sources, engine }) => [
  createKindController({
    ...engine('workspace', 4),
    reflector: room.world.Workspace,
    reconcile: unlessPaused(room, PAUSABLE.Workspace, reconcileWorkspace(room)),
    finalize: finalizeWorkspace(room),
    sources: [...sources.workspace, dataPlane.source],
  }),
  createIngressKeyWatch(engine('ingresskey', 1), room.world),
];
