import type { CompiledTenant } from '../../core/routing/compile-routes.ts';
import type { TenantRoutes } from '../../core/routing/routes.ts';
import type { AnyObject } from '../../kube/object.ts';
import type { StoredRoutes } from '../../redis/control-plan.ts';
import type { Closing } from './closing.ts';
import { createExclusiveRuns, type ExclusiveRuns } from './exclusive-runs.ts';

/** The routes of one tenant, as they are known to this leader. */
export interface Tenant {
  readonly name: string;
  readonly runs: ExclusiveRuns;
  /** The routes that this leader wrote to Redis. If this is undefined, they must be read again. */
  stored: StoredRoutes | undefined;
  /** The last known routes in Redis. The names in these routes are read even if Redis has lost the index. */
  remembered: TenantRoutes | undefined;
  compiled: CompiledTenant | undefined;
  /** The versions of all objects that were used to compile the routes. */
  seen: ReadonlySet<string>;
  /**
   * The routes that were closed during the pause. Undefined if the workspace is not paused or if Redis has not been
   * read yet.
   */
  closing: Closing | undefined;
  /** True if the last run failed, in which case the routes may not have been applied. */
  failed: boolean;
}

export function createTenant(name: string): Tenant {
  return {
    name,
    runs: createExclusiveRuns(),
    stored: undefined,
    remembered: undefined,
    compiled: undefined,
    seen: new Set(),
    closing: undefined,
    failed: false,
  };
}

/** Marks the routes of the tenant in Redis as unknown. */
export function forgetStored(tenant: Tenant): void {
  tenant.stored = undefined;
  tenant.closing = undefined;
}

/** Returns the version of an object. It changes with the spec, the deletion timestamp and the finalizers. */
export function versionOf({ metadata }: AnyObject): string {
  const { uid, generation, deletionTimestamp, finalizers } = metadata;
  return `${uid}@${generation ?? 0}${deletionTimestamp === undefined ? '' : '-'}${finalizers?.length ?? 0}`;
}

/** Returns true if there are no routes. */
export function isEmpty({ payer, queues, integrations }: TenantRoutes): boolean {
  return payer === '' && Object.keys(queues).length === 0 && Object.keys(integrations).length === 0;
}

/** Returns the UIDs of the Subscriptions and Blocks for which the routes have changed. */
export function changedObjects(had: CompiledTenant, has: CompiledTenant): Set<string> {
  const changed = new Set<string>();
  for (const [uid, verdict] of has.verdicts) {
    const before = had.verdicts.get(uid);
    const same = (['ready', 'live', 'detail', 'about'] as const).every(part => before?.[part] === verdict[part]);
    if (!same) changed.add(uid);
  }
  for (const uid of new Set([...had.paused.keys(), ...has.paused.keys()])) {
    if (had.paused.get(uid) !== has.paused.get(uid)) changed.add(uid);
  }
  return changed;
}
