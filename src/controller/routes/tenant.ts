import type { CompiledTenant } from '../../core/routing/compile-routes.ts';
import type { TenantRoutes } from '../../core/routing/routes.ts';
import type { AnyObject } from '../../kube/object.ts';
import type { StoredRoutes } from '../../redis/control-plan.ts';
import type { Closing } from './closing.ts';
import { createExclusiveRuns, type ExclusiveRuns } from './exclusive-runs.ts';

/** What this leader knows of the routes of one tenant. */
export interface Tenant {
  readonly name: string;
  readonly runs: ExclusiveRuns;
  /** The routes in Redis as this leader wrote them; undefined: read them again. */
  stored: StoredRoutes | undefined;
  /** The last known routes in Redis: their names are read even if Redis has lost the index. */
  remembered: TenantRoutes | undefined;
  compiled: CompiledTenant | undefined;
  /** Versions of all objects in the compiled routes. */
  seen: ReadonlySet<string>;
  /** What was closed during the pause; undefined if the workspace is not paused, or before it was read. */
  closing: Closing | undefined;
  /** The last run failed: the routes may not be applied. */
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

/** Marks the tenant's routes in Redis as not known any more. */
export function forgetStored(tenant: Tenant): void {
  tenant.stored = undefined;
  tenant.closing = undefined;
}

/** Returns the version of an object: it changes with the spec, the deletion and the finalizers. */
export function versionOf({ metadata }: AnyObject): string {
  const { uid, generation, deletionTimestamp, finalizers } = metadata;
  return `${uid}@${generation ?? 0}${deletionTimestamp === undefined ? '' : '-'}${finalizers?.length ?? 0}`;
}

/** Returns whether the routes are empty. */
export function isEmpty({ payer, queues, integrations }: TenantRoutes): boolean {
  return payer === '' && Object.keys(queues).length === 0 && Object.keys(integrations).length === 0;
}

/** Returns UIDs of the Subscriptions and Blocks for which the routes have changed. */
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
