import { FIELD_MANAGER, QUOTA_NAME } from '../../../api/well-known.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { isKubeError, type KubeError } from '../../../kube/kube-error.ts';
import { type ManagedFields, managedFieldsOf } from '../../../kube/managed-fields.ts';
import type { AnyObject } from '../../../kube/object.ts';
import { RESOURCE_QUOTAS } from '../../../kube/resource.ts';
import type { Logger } from '../../../telemetry/log.ts';
import { type Controller, createKeyedController, type KeyedControllerOptions } from '../../engine/keyed-controller.ts';

/** The limits by resource, such as `count/activations.sluice.dev`. The values are Kubernetes quantities. */
export type Quota = Readonly<Record<string, string>>;

/** WorkspaceQuotas writes quotas into the workspace namespaces. */
export interface WorkspaceQuotas {
  /**
   * Writes the quota unless this process has already written the same quota. Never rejects, because the workspace can
   * also work without a quota.
   *
   * @param limits limits of this workspace, which the default quota overrides
   */
  readonly ensure: (namespace: string, limits?: Quota) => Promise<void>;
  /**
   * Writes all quotas again that could not be written, were deleted, or are missing some of their limits.
   *
   * @param owns whether a namespace still belongs to a workspace. Another leader may have detected the deletion.
   */
  readonly repair: (owns: (namespace: string) => boolean, signal: AbortSignal) => Promise<void>;
  /** Call this when the namespace no longer belongs to a workspace. */
  readonly forget: (namespace: string) => void;
}

type QuotaObject = AnyObject & {
  readonly metadata: { readonly managedFields?: readonly ManagedFields[] };
  readonly spec?: { readonly hard?: Quota };
};

/** RBAC limits lists to this name. */
const SELECTOR = `metadata.name=${QUOTA_NAME}`;

/** The fields of other managers, in the format of a conflict. */
function conflictingLimits(error: KubeError): Set<string> {
  return new Set(
    error.causes
      .filter(({ reason }) => reason === 'FieldManagerConflict')
      .map(({ field }) => field.replace('.spec.hard.', '')),
  );
}

/** The limits for a namespace, and true if they have been written. */
interface Entry {
  readonly hard: Quota;
  readonly written: boolean;
}

const isEmpty = (hard: Quota) => Object.keys(hard).length === 0;
const isSame = (one: Quota, other: Quota) => JSON.stringify(one) === JSON.stringify(other);

/** Lists all namespaces whose quota contains limits written by an earlier process. */
async function listLeftover({ list }: Pick<KubeClient, 'list'>): Promise<ReadonlySet<string>> {
  const named = (object: QuotaObject) =>
    Object.keys(object.spec?.hard ?? {}).length > 0 &&
    managedFieldsOf(object).some(({ manager }) => manager === FIELD_MANAGER.controller)
      ? object.metadata.namespace
      : undefined;
  const { items } = await list(RESOURCE_QUOTAS, named, { fieldSelector: SELECTOR });
  return new Set(items as string[]);
}

/** Writes all limits that have not been changed by other managers. */
async function writeQuota(client: Pick<KubeClient, 'apply'>, namespace: string, hard: Quota): Promise<void> {
  const apply = (limits: Quota) =>
    client.apply(
      RESOURCE_QUOTAS,
      { namespace, name: QUOTA_NAME },
      { spec: { hard: limits } },
      { fieldManager: FIELD_MANAGER.controller },
    );
  try {
    await apply(hard);
  } catch (error) {
    if (!isKubeError(error, 409) || error.conflictManagers.length === 0) throw error;
    const others = conflictingLimits(error);
    await apply(Object.fromEntries(Object.entries(hard).filter(([resource]) => !others.has(resource))));
  }
}

/**
 * @param quota default quota of every workspace. Without this, namespaces without their own limits do not have a quota.
 * Limits
 *   that an earlier process has written are removed from existing ones, and those of others stay as they are.
 */
export function createWorkspaceQuotas(deps: {
  readonly client: Pick<KubeClient, 'apply' | 'list'>;
  readonly quota: Quota | undefined;
  readonly log: Pick<Logger, 'warn'>;
}): WorkspaceQuotas {
  const { client, quota = {}, log } = deps;
  /** Namespaces with a quota. */
  const namespaces = new Map<string, Entry>();

  const write = (namespace: string, hard: Quota) => writeQuota(client, namespace, hard);
  let leftover: Promise<ReadonlySet<string>> | undefined;

  /** Removes limits that an earlier process has written to the quota of a namespace which should not have a quota. */
  async function clear(namespace: string): Promise<void> {
    try {
      namespaces.set(namespace, { hard: {}, written: false });
      leftover ??= listLeftover(client);
      if ((await leftover).has(namespace)) await write(namespace, {});
      namespaces.set(namespace, { hard: {}, written: true });
    } catch (error) {
      leftover = undefined;
      log.warn({ err: error as Error, namespace }, 'failed to clear a workspace quota, retrying');
    }
  }

  async function ensure(namespace: string, limits: Quota = {}): Promise<void> {
    const hard = { ...limits, ...quota };
    const last = namespaces.get(namespace);
    if (last?.written && isSame(last.hard, hard)) return;
    await (last === undefined && isEmpty(hard) ? clear(namespace) : put(namespace, hard));
  }

  async function put(namespace: string, hard: Quota): Promise<void> {
    try {
      namespaces.set(namespace, { hard, written: false });
      await write(namespace, hard);
      namespaces.set(namespace, { hard, written: true });
    } catch (error) {
      log.warn({ err: error as Error, namespace }, 'failed to write a workspace quota, retrying');
    }
  }

  return {
    ensure,
    async repair(owns, signal) {
      for (const [namespace, { hard, written }] of namespaces) {
        if (isEmpty(hard) && !written && owns(namespace) && !signal.aborted) await clear(namespace);
      }
      const expected = [...namespaces].filter(([namespace, { hard }]) => !isEmpty(hard) && owns(namespace));
      if (expected.length === 0) return;
      const complete = ({ metadata: { namespace = '' }, spec }: QuotaObject) =>
        Object.keys(namespaces.get(namespace)?.hard ?? {}).every(resource => spec?.hard?.[resource] !== undefined)
          ? namespace
          : undefined;
      const { items } = await client.list(RESOURCE_QUOTAS, complete, { fieldSelector: SELECTOR, signal });
      const found = new Set(items);
      for (const [namespace] of expected) {
        const entry = namespaces.get(namespace);
        if (found.has(namespace) || entry === undefined || signal.aborted) continue;
        await put(namespace, entry.hard);
      }
    },
    forget: namespace => namespaces.delete(namespace),
  };
}

/** The interval between two comparisons of the quotas, in milliseconds. */
const REPAIR_EVERY_MS = 120_000;

/**
 * Creates a controller which repairs the quotas every two minutes. Quotas are listed instead of watched because they
 * change whenever a counted object is created or deleted.
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
