import { FIELD_MANAGER, QUOTA_NAME } from '../../../api/well-known.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { isKubeError, type KubeError } from '../../../kube/kube-error.ts';
import { RESOURCE_QUOTAS } from '../../../kube/resource.ts';
import type { Logger } from '../../../telemetry/log.ts';

/** Limits by resource, such as `count/activations.sluice.dev`, as Kubernetes quantities. */
export type Quota = Readonly<Record<string, string>>;

/** WorkspaceQuotas writes the default quota into the namespaces of workspaces. */
export interface WorkspaceQuotas {
  /** Writes the quota, unless this process has done so before. Never rejects, since the workspace works without it. */
  readonly ensure: (namespace: string) => Promise<void>;
  /** Call this when the namespace no longer belongs to a workspace. */
  readonly forget: (namespace: string) => void;
}

/** Fields of other managers, as they appear in a conflict. */
function conflictingLimits(error: KubeError): Set<string> {
  return new Set(
    error.causes
      .filter(({ reason }) => reason === 'FieldManagerConflict')
      .map(({ field }) => field.replace('.spec.hard.', '')),
  );
}

/** @param quota undefined or empty to write no quotas. Existing ones stay as they are. */
export function createWorkspaceQuotas(deps: {
  readonly client: Pick<KubeClient, 'apply'>;
  readonly quota: Quota | undefined;
  readonly log: Pick<Logger, 'warn'>;
}): WorkspaceQuotas {
  const { client, quota = {}, log } = deps;
  const written = new Set<string>();

  const apply = (namespace: string, hard: Quota) =>
    client.apply(
      RESOURCE_QUOTAS,
      { namespace, name: QUOTA_NAME },
      { spec: { hard } },
      { fieldManager: FIELD_MANAGER.controller },
    );

  /** Writes the limits that nobody else has changed. */
  async function write(namespace: string): Promise<void> {
    try {
      await apply(namespace, quota);
    } catch (error) {
      if (!isKubeError(error, 409) || error.conflictManagers.length === 0) throw error;
      const others = conflictingLimits(error);
      await apply(namespace, Object.fromEntries(Object.entries(quota).filter(([resource]) => !others.has(resource))));
    }
  }

  return {
    async ensure(namespace) {
      if (Object.keys(quota).length === 0 || written.has(namespace)) return;
      try {
        await write(namespace);
        written.add(namespace);
      } catch (error) {
        log.warn(
          { err: error as Error, namespace },
          'cannot write the quota of a workspace; retrying at its next change',
        );
      }
    },
    forget: namespace => written.delete(namespace),
  };
}
