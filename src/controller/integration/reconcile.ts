import { integrationState } from '../../core/integration-state.ts';
import type { Room } from '../room.ts';
import type { Cached } from '../world.ts';
import { planIntegration } from './plan.ts';

export function reconcileIntegration(room: Room) {
  return async (integration: Cached<'Integration'>) => {
    const { metadata, spec, status } = integration;
    const namespace = metadata.namespace as string;
    const workspaceExists = room.world.Workspace.store.get(namespace) !== undefined;
    if (workspaceExists) await room.tenants.inForce(namespace, integration);
    const expiresAt = status?.invitation?.expiresAt;
    const expiresMs = expiresAt === undefined ? undefined : Date.parse(expiresAt);
    const nowMs = room.wallMs();
    const state = integrationState({ spec, ...(expiresMs === undefined ? {} : { expiresMs }) }, nowMs);
    const outcome = planIntegration({
      namespace,
      name: metadata.name,
      state,
      invited: spec.invitedEmail !== undefined,
      workspaceExists,
      invitation: status?.invitation,
    });
    const endsInMs = state === 'Pending' && expiresMs !== undefined ? expiresMs - nowMs : undefined;
    return { ...outcome, ...(endsInMs === undefined ? {} : { requeueAfterMs: Math.max(1_000, endsInMs) }) };
  };
}
