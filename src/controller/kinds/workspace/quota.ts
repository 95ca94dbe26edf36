import { FIELD_MANAGER, QUOTA_NAME } from '../../../api/well-known.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { isKubeError, type KubeError } from '../../../kube/kube-error.ts';
import type { AnyObject } from '../../../kube/object.ts';
import { RESOURCE_QUOTAS } from '../../../kube/resource.ts';
import type { Logger } from '../../../telemetry/log.ts';
import { type Controller, createKeyedController, type KeyedControllerOptions } from '../../engine/keyed-controller.ts';

/** Limits by resource, such as `count/activations.sluice.dev`, as Kubernetes quantities. */
export type Quota = Readonly<Record<string, string>>;

/** WorkspaceQuotas writes the default quota into the namespaces of workspaces. */
export interface WorkspaceQuotas {
  /** Writes the quota, unless this process has done so before. Never rejects, since the workspace works without it. */
  readonly ensure: (namespace: string) => Promise<void>;
  /**
   * Writes the quotas again that could not be written, were deleted, or have lost limits.
   *
   * @param owns whether a namespace still belongs to a workspace. Another leader may have seen its end.
   */
  readonly repair: (owns: (namespace: string) => boolean, signal: AbortSignal) => Promise<void>;
  /** Call this when the namespace no longer belongs to a workspace. */
  readonly forget: (namespace: string) => void;
}

type QuotaObject = AnyObject & { readonly spec?: { readonly hard?: Quota } };

/** RBAC limits lists to this name. */
const SELECTOR = `metadata.name=${QUOTA_NAME}`;

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
  readonly client: Pick<KubeClient, 'apply' | 'list'>;
  readonly quota: Quota | undefined;
  readonly log: Pick<Logger, 'warn'>;
}): WorkspaceQuotas {
  const { client, quota = {}, log } = deps;
  const resources = Object.keys(quota);
  /** Namespaces that have a quota, and whether it was written. */
  const namespaces = new Map<string, boolean>();

  const apply = (namespace: string, hard: Quota) =>
    client.apply(
      RESOURCE_QUOTAS,
      { namespace, name: QUOTA_NAME },
      { spec: { hard } },
      { fieldManager: FIELD_MANAGER.controller },
    );

  /** Writes the limits that were not changed by others. */
  async function write(namespace: string): Promise<void> {
    try {
      await apply(namespace, quota);
    } catch (error) {
      if (!isKubeError(error, 409) || error.conflictManagers.length === 0) throw error;
      const others = conflictingLimits(error);
      await apply(namespace, Object.fromEntries(Object.entries(quota).filter(([resource]) => !others.has(resource))));
    }
  }

  async function ensure(namespace: string): Promise<void> {
    if (resources.length === 0 || namespaces.get(namespace) === true) return;
    try {
      namespaces.set(namespace, false);
      await write(namespace);
      namespaces.set(namespace, true);
    } catch (error) {
      log.warn({ err: error as Error, namespace }, 'cannot write the quota of a workspace; retrying');
    }
  }

  return {
    ensure,
    async repair(owns, signal) {
      const expected = [...namespaces.keys()].filter(owns);
      if (expected.length === 0) return;
      const complete = ({ metadata, spec }: QuotaObject) =>
        resources.every(resource => spec?.hard?.[resource] !== undefined) ? metadata.namespace : undefined;
      const { items } = await client.list(RESOURCE_QUOTAS, complete, { fieldSelector: SELECTOR, signal });
      const found = new Set(items);
      for (const namespace of expected) {
        if (found.has(namespace) || !namespaces.has(namespace) || signal.aborted) continue;
        namespaces.set(namespace, false);
        await ensure(namespace);
      }
    },
    forget: namespace => namespaces.delete(namespace),
  };
}

/** How often the quotas are compared, in milliseconds. */
const REPAIR_EVERY_MS = 120_000;

/**
 * Creates a controller that repairs the quotas every two minutes. They are listed rather than watched, because a quota
 * changes whenever an object that it counts is created or deleted.
 */
export function createQuotaRepair(
  engine: Omit<KeyedControllerOptions, 'reconcile'>,
  quotas: Pick<WorkspaceQuotas, 'repair'>,
  owns: (namespace: string) => boolean,
): Controller {
  return createKeyedController({
    ...engine,
    keys: () => ['all'],
    reconcile: async (_key, { signal }) => {
      await quotas.repair(owns, signal);
      return { requeueAfterMs: REPAIR_EVERY_MS };
    },
  });
}
