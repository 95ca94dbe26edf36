import { ownsNamespace } from '../../context/context.ts';
import { PAUSABLE, unlessPaused } from '../../context/paused.ts';
import { createKindController } from '../../engine/kind-controller.ts';
import type { CreateControllers } from '../kind.ts';
import { createIngressKeyWatch } from './ingress-key-watch.ts';
import { createQuotaRepair, createWorkspaceQuotas } from './quota.ts';
import { closeWorkspace, finalizeWorkspace, reconcileWorkspace } from './reconcile.ts';
import { workspaceSources } from './sources.ts';

export const createWorkspaceControllers: CreateControllers = ({
  client,
  context,
  dataPlane,
  workspaceQuota,
  engine,
}) => {
  const parts = engine('workspace', 4);
  const quotas = createWorkspaceQuotas({ client, quota: workspaceQuota, log: parts.log });
  return [
    createKindController({
      ...parts,
      reflector: context.caches.Workspace,
      reconcile: unlessPaused(context, PAUSABLE.Workspace, reconcileWorkspace({ ...context, quotas }), {
        untilClosed: closeWorkspace(context),
      }),
      finalize: finalizeWorkspace({ ...context, quotas }),
      sources: [...workspaceSources(context.caches), ...context.secretAccess.sources, dataPlane.source],
    }),
    createIngressKeyWatch(engine('ingresskey', 1), context.caches),
    createQuotaRepair(engine('quota', 1), quotas, namespace => ownsNamespace(context.caches, namespace)),
  ];
};
